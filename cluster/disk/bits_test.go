package disk

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestR17NoBitHidesAnEntry flips each bit of what says where entries and values are,
// on every page that is in use: the log is refused, or all of it is there.
func TestR17NoBitHidesAnEntry(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, logs, stable := openWatched(t, dir)
	for index := uint64(1); index <= 6; index++ {
		log := entryAt(index)
		log.Data = log.Data[:20]
		if err := logs.StoreLog(log); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range stableKeys {
		if err := stable.SetUint64([]byte(key), 7); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, logFile)
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	used := &pages{file: bytes.NewReader(good), size: int64(len(good))}
	if err := used.check(); err != nil {
		t.Fatal(err)
	}
	want, err := checkLog(path)
	if err != nil || want.last != 6 || !want.term {
		t.Fatalf("undamaged: %+v, %v", want, err)
	}
	const page, structure = 4096, 240
	for at := 2 * page; at < len(good); at++ {
		if id := uint64(at / page); at%page >= structure || used.seen[id/64]&(1<<(id%64)) == 0 {
			continue
		}
		for bit := range 8 {
			if _, err := file.WriteAt([]byte{good[at] ^ 1<<bit}, int64(at)); err != nil {
				t.Fatal(err)
			}
			// A log that was never made is refused by whoever knows that there was one.
			if found, err := checkLog(path); err == nil && found.made && found != want {
				t.Errorf("bit %d of byte %d of page %d: %+v, want %+v", bit, at%page, at/page, found, want)
			}
		}
		if _, err := file.WriteAt(good[at:at+1], int64(at)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestR17UnknownNames: a key that was changed would be missed as if there were none,
// and with it a vote.
func TestR17UnknownNames(t *testing.T) {
	t.Parallel()
	good, err := os.ReadFile(filepath.Join(filled(t), logFile))
	if err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{
		"LastVoteCand": "LastVoteCane", "CurrentTerm": "CurrentTerl", "logs": "logt", "conf": "cong",
	} {
		path := filepath.Join(t.TempDir(), logFile)
		if err := os.WriteFile(path, bytes.ReplaceAll(good, []byte(from), []byte(to)), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := checkLog(path); err == nil || !strings.Contains(err.Error(), "unknown") {
			t.Errorf("%s for %s: %v, want one that says unknown", to, from, err)
		}
	}
}
