package identity

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	clusterX = "0123456789abcdef0123456789abcdef"
	clusterY = "fedcba9876543210fedcba9876543210"
)

func open(t *testing.T, path, name string) *Dir {
	t.Helper()
	d, err := Open(path, name)
	if err != nil {
		t.Fatalf("open %s: %v", path, err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// refused opens and wants an error with every one of the texts.
func refused(t *testing.T, path, name string, target error, texts ...string) {
	t.Helper()
	d, err := Open(path, name)
	if err == nil {
		_ = d.Close()
		t.Fatalf("open %s as %s: got no error, want one with %q", path, name, texts)
	}
	if target != nil && !errors.Is(err, target) {
		t.Errorf("got %v, want %v", err, target)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("got %q, want it to name %q", err, text)
		}
	}
}

// content is every file below path with its bytes.
func content(t *testing.T, path string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(path, func(p string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() || e.Name() == lockFile {
			return err
		}
		raw, err := os.ReadFile(p)
		fmt.Fprintf(&b, "%s: %q\n", p, raw)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func members(id string) []Member {
	return []Member{{RaftID: id, Peer: "n1:7201"}, {RaftID: "n2.22222222", Peer: "n2:7201"}}
}

func TestOpen(t *testing.T) {
	t.Parallel()
	t.Run("a_new_directory", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "a", "b")
		d := open(t, path, "n1")
		if CheckRaftID(d.RaftID()) != nil || NameOf(d.RaftID()) != "n1" {
			t.Errorf("got raft id %s", d.RaftID())
		}
		for name, want := range map[string]os.FileMode{"": 0o700, recordFile: 0o600, lockFile: 0o600} {
			st, err := os.Stat(filepath.Join(path, name))
			if err != nil {
				t.Fatal(err)
			}
			if got := st.Mode().Perm(); got != want {
				t.Errorf("mode of %q: got %04o, want %04o", name, got, want)
			}
		}
	})
	t.Run("R36_the_incarnation_stays_and_another_directory_has_another", func(t *testing.T) {
		t.Parallel()
		path := t.TempDir()
		d := open(t, path, "n1")
		id := d.RaftID()
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		again := open(t, path, "n1")
		if again.RaftID() != id {
			t.Errorf("reopened: got %s, want %s", again.RaftID(), id)
		}
		if other := open(t, t.TempDir(), "n1"); other.RaftID() == id {
			t.Errorf("two directories have the same raft id %s", id)
		}
	})
	t.Run("in_use", func(t *testing.T) {
		t.Parallel()
		path := t.TempDir()
		d := open(t, path, "n1")
		refused(t, path, "n1", ErrInUse, path, fmt.Sprintf("in use by another process (pid %d)", os.Getpid()))
		if err := errors.Join(d.Close(), d.Close()); err != nil {
			t.Fatal(err)
		}
		open(t, path, "n1")
	})
	t.Run("of_another_node", func(t *testing.T) {
		t.Parallel()
		path := t.TempDir()
		_ = open(t, path, "n1").Close()
		before := content(t, path)
		refused(t, path, "n2", ErrOtherNode, path, "n1", "--id n2")
		if after := content(t, path); after != before {
			t.Errorf("refused, but changed %s to %s", before, after)
		}
	})
	t.Run("R37_files_without_an_identity", func(t *testing.T) {
		t.Parallel()
		path := t.TempDir()
		if err := os.WriteFile(filepath.Join(path, "raft.db"), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		before := content(t, path)
		refused(t, path, "n1", nil, path, `"raft.db"`, recordFile)
		if after := content(t, path); after != before {
			t.Errorf("refused, but changed %s to %s", before, after)
		}
	})
	t.Run("leftovers_of_a_crash_and_a_mount_point", func(t *testing.T) {
		t.Parallel()
		path := t.TempDir()
		if err := os.Mkdir(filepath.Join(path, "lost+found"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(path, tmpPattern), []byte("half a rec"), 0o600); err != nil {
			t.Fatal(err)
		}
		open(t, path, "n1")
	})
	t.Run("a_file_in_its_place", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		refused(t, path, "n1", nil, path, "is not a directory")
	})
	t.Run("R23_modes_are_tightened", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "open")
		if err := os.Mkdir(path, 0o755); err != nil {
			t.Fatal(err)
		}
		open(t, path, "n1")
		if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o700 {
			t.Errorf("mode %v, %v, want 0700", st.Mode(), err)
		}
	})
}

func TestUnreadable(t *testing.T) {
	t.Parallel()
	t.Run("every_flipped_bit_is_noticed", func(t *testing.T) {
		t.Parallel()
		good, err := encode(Record{
			Name: "n1", Incarnation: "11111111", ClusterID: clusterX, Formed: true, Members: members("n1.11111111"),
		})
		if err != nil {
			t.Fatal(err)
		}
		want, err := decode(good)
		if err != nil {
			t.Fatal(err)
		}
		for i := range good {
			for bit := range 8 {
				bad := append([]byte(nil), good...)
				bad[i] ^= 1 << bit
				got, err := decode(bad)
				if err == nil && (got.RaftID() != want.RaftID() || got.ClusterID != want.ClusterID || !got.Formed) {
					t.Fatalf("bit %d of byte %d: read as %+v", bit, i, got)
				}
			}
		}
		for i := range len(good) - 2 {
			if got, err := decode(good[:i]); err == nil {
				t.Fatalf("the first %d bytes: read as %+v", i, got)
			}
		}
	})
	for name, raw := range map[string]string{
		"empty":         "",
		"not_json":      "hello",
		"something_on":  `{"version":1,"identity":{"name":"n1","incarnation":"11111111"},"crc32c":0}x`,
		"unknown_field": `{"version":1,"identity":{"name":"n1","incarnation":"11111111"},"crc32c":0,"x":1}`,
		"a_newer_one":   `{"version":2}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := t.TempDir()
			if err := os.WriteFile(filepath.Join(path, recordFile), []byte(raw), 0o600); err != nil {
				t.Fatal(err)
			}
			refused(t, path, "n1", ErrUnreadable, path, recordFile)
		})
	}
	t.Run("a_directory_in_its_place", func(t *testing.T) {
		t.Parallel()
		path := t.TempDir()
		if err := os.Mkdir(filepath.Join(path, recordFile), 0o700); err != nil {
			t.Fatal(err)
		}
		refused(t, path, "n1", ErrUnreadable, path, recordFile)
	})
}

func TestPromise(t *testing.T) {
	t.Parallel()
	t.Run("R36_on_disk_and_for_ever", func(t *testing.T) {
		t.Parallel()
		path := t.TempDir()
		d := open(t, path, "n1")
		plan := members(d.RaftID())
		for range 2 {
			if err := d.Promise(clusterX, plan); err != nil {
				t.Fatal(err)
			}
		}
		_ = d.Close()
		d = open(t, path, "n1")
		if r := d.Record(); r.ClusterID != clusterX || len(r.Members) != 2 || r.Formed {
			t.Errorf("after reopening: got %+v", r)
		}
		other := []Member{plan[0], {RaftID: "n3.33333333", Peer: "n3:7201"}}
		for what, err := range map[string]error{
			"another promise": d.Promise(clusterY, plan), "another join": d.Join(clusterY), "another form": d.Form(clusterY),
		} {
			if !errors.Is(err, ErrOtherCluster) {
				t.Errorf("%s: got %v, want another cluster", what, err)
			}
		}
		if err := d.Promise(clusterX, other); err == nil {
			t.Error("other members of the same cluster: got no error")
		}
		if err := errors.Join(d.Form(clusterX), d.Form(clusterX), d.Join(clusterX)); err != nil {
			t.Error(err)
		}
		if r := d.Record(); !r.Formed || len(r.Members) != 2 {
			t.Errorf("after forming: got %+v", r)
		}
	})
	t.Run("a_failed_write_changes_nothing", func(t *testing.T) {
		t.Parallel()
		d := open(t, t.TempDir(), "n1")
		failure := errors.New("disk full")
		d.write = func(string, []byte) error { return failure }
		if err := d.Promise(clusterX, members(d.RaftID())); !errors.Is(err, failure) {
			t.Errorf("promise: got %v, want %v", err, failure)
		}
		if err := d.Form(clusterX); !errors.Is(err, failure) {
			t.Errorf("form: got %v, want %v", err, failure)
		}
		if r := d.Record(); r.ClusterID != "" || r.Formed {
			t.Errorf("after failed writes: got %+v", r)
		}
	})
	t.Run("bad_values", func(t *testing.T) {
		t.Parallel()
		d := open(t, t.TempDir(), "n1")
		if err := errors.Join(d.Promise("x", members(d.RaftID()))); err == nil || !strings.Contains(err.Error(), `"x"`) {
			t.Errorf("cluster id x: got %v", err)
		}
		if err := d.Join(strings.ToUpper(clusterX)); err == nil {
			t.Error("an upper-case cluster id: got no error")
		}
	})
	t.Run("R33_removed", func(t *testing.T) {
		t.Parallel()
		path := t.TempDir()
		d := open(t, path, "n1")
		if err := errors.Join(d.Form(clusterX), d.Remove(), d.Close()); err != nil {
			t.Fatal(err)
		}
		refused(t, path, "n1", ErrRemoved, "n1", clusterX, path)
	})
}

func TestNames(t *testing.T) {
	t.Parallel()
	for name, ok := range map[string]bool{
		"n1": true, "a": true, "9-x_y.z": true, strings.Repeat("a", 63): true,
		"": false, "N1": false, "-a": false, ".a": false, "a b": false, "a/b": false, "ä": false,
		strings.Repeat("a", 64): false,
	} {
		if err := CheckName(name); (err == nil) != ok {
			t.Errorf("CheckName(%q): got %v, want ok %v", name, err, ok)
		}
	}
	for id, name := range map[string]string{"n1.11111111": "n1", "a.b.11111111": "a.b", "n1": "n1"} {
		if got := NameOf(id); got != name {
			t.Errorf("NameOf(%q): got %q, want %q", id, got, name)
		}
	}
	for _, id := range []string{"", "n1", "n1.", "n1.1111111", "n1.1111111G", ".11111111", "N.11111111"} {
		if CheckRaftID(id) == nil {
			t.Errorf("CheckRaftID(%q): got no error", id)
		}
	}
	if a, b := NewClusterID(), NewClusterID(); a == b || CheckClusterID(a) != nil {
		t.Errorf("drew %q and %q", a, b)
	}
}

// FuzzDecode: whatever the file holds, it is refused or is a record that this
// program would have written.
func FuzzDecode(f *testing.F) {
	for _, r := range []Record{
		{Name: "n1", Incarnation: "11111111"},
		{Name: "n1", Incarnation: "11111111", ClusterID: clusterX, Members: members("n1.11111111")},
		{Name: "n1", Incarnation: "11111111", ClusterID: clusterX, Formed: true, Removed: true},
	} {
		b, err := encode(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := decode(b)
		if err != nil {
			return
		}
		if err := r.check(); err != nil {
			t.Errorf("decoded %+v: %v", r, err)
		}
		again, err := encode(r)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decode(again); err != nil {
			t.Errorf("encoded again: %v", err)
		}
	})
}
