package usage

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// files are the books of hours that were written, a file each:
//
//	usage/2026-03-01T02.jsonl
//
// A line is eight hex digits, the CRC-32C of the rest of the line, a space, and an entry
// with its count as JSON.
type files struct{ dir string }

const (
	hourLayout = "2006-01-02T15"
	suffix     = ".jsonl"
	// unfinished ends the name of a file until all of it is written.
	unfinished = ".new"
	// fileMost is how much of a file is read, in bytes: more than a whole hour has.
	fileMost = 16 << 20
	// sumDigits are those of a line's checksum.
	sumDigits = 8
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// record is a line.
type record struct {
	entry
	Count
}

// make makes the directory.
func (f files) make() error {
	// Who asked for what is nobody's business but the operator's.
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return fmt.Errorf("usage book: %w", err)
	}
	return nil
}

func (f files) path(at int64) string {
	return filepath.Join(f.dir, time.Unix(at*3600, 0).UTC().Format(hourLayout)+suffix)
}

// write replaces the book of an hour, as a whole or not at all.
func (f files) write(at int64, book *hour) error {
	var lines bytes.Buffer
	// Names first: who reads it has room for as many as who counted.
	for _, t := range []table{book.names, book.keys} {
		for _, e := range slices.SortedFunc(maps.Keys(t), byRoom) {
			// Texts and numbers: it can't fail.
			line, _ := json.Marshal(record{e, *t[e]})
			fmt.Fprintf(&lines, "%0*x %s\n", sumDigits, crc32.Checksum(line, castagnoli), line)
		}
	}
	path := f.path(at)
	next := path + unfinished
	err := whole(next, lines.Bytes())
	if err == nil {
		err = os.Rename(next, path)
	}
	if err != nil {
		return fmt.Errorf("write usage book: %w", errors.Join(err, ignoreMissing(os.Remove(next))))
	}
	return nil
}

// whole writes a file down to the disk: one that is renamed before may be empty after a
// power cut.
func whole(path string, text []byte) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if _, err = file.Write(text); err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// byRoom puts entries in the order in which an hour makes room for them.
func byRoom(a, b entry) int {
	room := func(e entry) int {
		switch {
		case e.Settled:
			// They have no other room than that of names.
			return 0
		case !e.Other:
			return 1
		case e.Limit != "":
			return 2
		}
		return 3
	}
	return cmp.Or(cmp.Compare(room(a), room(b)), strings.Compare(a.Client, b.Client), strings.Compare(a.Team, b.Team),
		strings.Compare(a.Limit, b.Limit), strings.Compare(a.Key, b.Key), strings.Compare(a.Dimension, b.Dimension))
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// read is the book of an hour, as far as it can be read: empty where there is none.
func (f files) read(at int64) *hour {
	book := newHour()
	file, err := os.Open(f.path(at))
	if err != nil {
		return book
	}
	defer file.Close()
	in := bufio.NewScanner(io.LimitReader(file, fileMost))
	for in.Scan() {
		digits, line, _ := bytes.Cut(in.Bytes(), []byte(" "))
		sum, err := strconv.ParseUint(string(digits), 16, 32)
		var r record
		if err != nil || uint32(sum) != crc32.Checksum(line, castagnoli) || json.Unmarshal(line, &r) != nil {
			continue
		}
		book.put(r.entry, r.Count)
	}
	return book
}

// forget removes books of hours before first.
func (f files) forget(first int64) error {
	list, err := os.ReadDir(f.dir)
	if err != nil {
		return fmt.Errorf("usage book: %w", err)
	}
	var errs []error
	for _, one := range list {
		name, isBook := strings.CutSuffix(strings.TrimSuffix(one.Name(), unfinished), suffix)
		began, err := time.Parse(hourLayout, name)
		if isBook && err == nil && hourOf(began) < first {
			errs = append(errs, ignoreMissing(os.Remove(filepath.Join(f.dir, one.Name()))))
		}
	}
	return errors.Join(errs...)
}
