package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/quorlease/quorlease/cmd/quorlease/exit"
	"github.com/quorlease/quorlease/cmd/quorlease/show"
)

const (
	formatText = "text"
	formatJSON = "json"
	formatYAML = "yaml"
	formatCSV  = "csv"
)

// checkFormat refuses a format that the command can't print.
func (a *app) checkFormat(more ...string) error {
	known := append([]string{formatText, formatJSON}, more...)
	for _, f := range known {
		if a.format == f {
			return nil
		}
	}
	return exit.Usagef("--output %q is none of %s", a.format, strings.Join(known, ", "))
}

// print writes one answer, as JSON or by the function that knows its text.
func (a *app) print(m proto.Message, text func(io.Writer)) error {
	if a.format == formatJSON {
		out, err := show.JSON(m)
		if err != nil {
			return err
		}
		var indented bytes.Buffer
		if err := json.Indent(&indented, out, "", "  "); err != nil {
			return fmt.Errorf("print the answer: %w", err)
		}
		return a.write(append(indented.Bytes(), '\n'))
	}
	var out bytes.Buffer
	text(&out)
	return a.write(out.Bytes())
}

// printLine writes one answer as one line of JSON.
func (a *app) printLine(m proto.Message) error {
	out, err := show.JSON(m)
	if err != nil {
		return err
	}
	return a.write(append(out, '\n'))
}

// write sends an answer out. A reader that has gone is an error like any other:
// nobody may take half an answer for a whole one.
func (a *app) write(out []byte) error {
	if _, err := a.stdout.Write(out); err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	return nil
}
