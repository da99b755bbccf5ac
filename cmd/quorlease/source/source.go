// Package source reads the limits files that a command line names.
package source

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/quorlease/quorlease/api/limitsfile"
	"github.com/quorlease/quorlease/cmd/quorlease/exit"
)

// Read reads and checks a limits file, or stdin where its name is a dash, and says
// what errors call it. A file that is wrong gives limitsfile.SourceErrors: bad
// input, not bad usage, since the command line is fine.
func Read(name string, stdin io.Reader) (shown string, file *limitsfile.File, err error) {
	in := stdin
	switch name {
	case "":
		return "", nil, exit.Usagef("-f is missing: name a limits file, or - for standard input")
	case "-":
		name = "standard input"
	default:
		opened, err := os.Open(name)
		if err != nil {
			return "", nil, fmt.Errorf("read limits: %w", err)
		}
		defer opened.Close()
		in = opened
	}
	// One byte more than there may be, so that what is too long is refused
	// instead of cut.
	data, err := io.ReadAll(io.LimitReader(in, limitsfile.FileMax+1))
	if err != nil {
		return "", nil, fmt.Errorf("read limits: %w", err)
	}
	file, err = limitsfile.ParseFile(name, data)
	return name, file, err
}

// Lines makes every mistake of a file an error of its own, with file, line and
// column. Other errors stay as they are.
func Lines(err error) error {
	var places limitsfile.SourceErrors
	if !errors.As(err, &places) {
		return err
	}
	each := make([]error, len(places))
	for i, place := range places {
		each[i] = place
	}
	return errors.Join(each...)
}
