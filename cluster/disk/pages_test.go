package disk

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
)

// TestPages damages one thing at a time, so that each check is met by itself.
func TestPages(t *testing.T) {
	t.Parallel()
	good, err := os.ReadFile(filepath.Join(filled(t), logFile))
	if err != nil {
		t.Fatal(err)
	}
	const page = 4096
	// newest is the meta page that counts, branch the first branch page in use.
	newest := 0
	if binary.NativeEndian.Uint64(good[pageHeader+48:]) < binary.NativeEndian.Uint64(good[page+pageHeader+48:]) {
		newest = page
	}
	branch := branchOf(t, good, newest)
	cases := []struct {
		name   string
		change func(b []byte) []byte
		want   string
	}{
		{"the_meta_page_that_counts", flip(newest + pageHeader + 40), "wrong checksum"},
		{"the_other_meta_page", flip(page - newest + pageHeader + 40), "wrong checksum"},
		{"no_magic", flip(newest + pageHeader), "is not one"},
		{"another_version", flip(newest + pageHeader + 4), "has version 3"},
		{"less_than_a_meta_page", func(b []byte) []byte { return b[:50] }, "ends at 50 bytes"},
		{"one_meta_page", func(b []byte) []byte { return b[:page] }, "ends at 4096 bytes"},
		{"all_but_the_last_pages", func(b []byte) []byte { return b[:branch+page] }, "too short for"},
		{"a_circle", func(b []byte) []byte {
			binary.NativeEndian.PutUint64(b[branch+pageHeader+8:], uint64(branch/page))
			return b
		}, "is referred to twice"},
		{"a_page_twice", func(b []byte) []byte {
			copy(b[branch+pageHeader+elementLen+8:], b[branch+pageHeader+8:branch+pageHeader+16])
			return b
		}, "is referred to twice"},
		{"two_pages_exchanged", func(b []byte) []byte {
			first, second := b[branch+pageHeader+8:], b[branch+pageHeader+elementLen+8:]
			one, other := binary.NativeEndian.Uint64(first), binary.NativeEndian.Uint64(second)
			binary.NativeEndian.PutUint64(first, other)
			binary.NativeEndian.PutUint64(second, one)
			return b
		}, "is not in order"},
		{"a_key_below_its_branch", func(b []byte) []byte {
			key, _, err := element(b[branch:branch+page], 1, true)
			if err != nil {
				t.Error(err)
				return b
			}
			key[7]++
			return b
		}, "is not in order"},
		{"a_page_that_is_none", func(b []byte) []byte {
			binary.NativeEndian.PutUint64(b[branch+pageHeader+8:], 1<<40)
			return b
		}, "page 1099511627776 of"},
		{"fewer_elements", func(b []byte) []byte {
			b[branch+10]--
			return b
		}, "lies at"},
		{"a_shorter_key", func(b []byte) []byte {
			b[branch+pageHeader+4]--
			return b
		}, "lies at"},
		{"an_element_outside", flip(branch + pageHeader + 3), "lies outside"},
		{"too_many_elements", flip(branch + 11), "elements in"},
		{"neither_branch_nor_leaf", flip(branch + 9), "has the flags"},
		{"reaches_too_far", flip(branch + 14), "reaches to page"},
		{"says_that_it_is_another", flip(branch), "says that it is page"},
	}
	for _, c := range cases {
		t.Run("R17_"+c.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), logFile)
			if err := os.WriteFile(path, c.change(slices.Clone(good)), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := checkPages(path); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
	t.Run("undamaged", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), logFile)
		if err := os.WriteFile(path, good, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := checkPages(path); err != nil {
			t.Error(err)
		}
	})
}

func flip(at int) func([]byte) []byte {
	return func(b []byte) []byte {
		b[at] ^= 1
		return b
	}
}

// branchOf is where the page with the root of the log lies.
func branchOf(t *testing.T, b []byte, newest int) int {
	t.Helper()
	const page = 4096
	root := int(binary.NativeEndian.Uint64(b[newest+pageHeader+16:])) * page
	for i := range int(binary.NativeEndian.Uint16(b[root+10:])) {
		key, value, err := element(b[root:root+page], i, false)
		if err != nil {
			t.Fatal(err)
		}
		if string(key) != "logs" {
			continue
		}
		at := int(binary.NativeEndian.Uint64(value)) * page
		if binary.NativeEndian.Uint16(b[at+8:]) == branchPage {
			return at
		}
	}
	t.Fatal("the log has no branch page")
	return 0
}

// FuzzPages changes a good file behind its meta pages, whose checksums would
// notice: the check ends, and what it accepts bbolt opens without a panic.
func FuzzPages(f *testing.F) {
	good, err := os.ReadFile(filepath.Join(filled(f), logFile))
	if err != nil {
		f.Fatal(err)
	}
	const page = 4096
	f.Add([]byte{0, 0, 0, 1})
	f.Add([]byte{0, 40, 8, 255, 0, 40, 16, 1})
	f.Fuzz(func(t *testing.T, edits []byte) {
		bad := slices.Clone(good)
		for ; len(edits) >= 4; edits = edits[4:] {
			// A page, a place near its beginning, where its structure is, and bits.
			at := int(edits[0])*256 + int(edits[1])
			bad[2*page+(at*page+int(edits[2]))%(len(bad)-2*page)] ^= edits[3]
		}
		path := filepath.Join(t.TempDir(), logFile)
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if checkPages(path) != nil {
			return
		}
		options := boltOptions()
		options.NoSync = true
		db, err := bbolt.Open(path, 0o600, options)
		if err != nil {
			t.Fatalf("accepted, but bbolt says: %v", err)
		}
		_ = db.Close()
	})
}
