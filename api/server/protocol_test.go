package server_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	// What the golden file describes.
	_ "github.com/quorlease/quorlease/api/quorlease/log/v1"
	_ "github.com/quorlease/quorlease/api/quorlease/peer/v1"
	_ "github.com/quorlease/quorlease/api/quorlease/v1"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

// The protocol, the log and what peers say to one another: whoever changes a
// name, a number or a type sees it here, and reviews it as what it is.
func TestProtocolIsAsReviewed(t *testing.T) {
	t.Parallel()
	var files []protoreflect.FileDescriptor
	protoregistry.GlobalFiles.RangeFiles(func(f protoreflect.FileDescriptor) bool {
		if strings.HasPrefix(f.Path(), "quorlease/") {
			files = append(files, f)
		}
		return true
	})
	sort.Slice(files, func(i, j int) bool { return files[i].Path() < files[j].Path() })
	var b strings.Builder
	for _, f := range files {
		fmt.Fprintf(&b, "file %s, package %s\n", f.Path(), f.Package())
		describeServices(&b, f)
		describeEnums(&b, f.Enums())
		describeMessages(&b, f.Messages())
	}
	golden(t, "protocol", b.String())
}

// Every call is in the reference.
func TestProtocolIsDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/reference/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	protoregistry.GlobalFiles.RangeFilesByPackage("quorlease.v1", func(f protoreflect.FileDescriptor) bool {
		for i := range f.Services().Len() {
			service := f.Services().Get(i)
			for j := range service.Methods().Len() {
				call := fmt.Sprintf("| `%s.%s` |", service.Name(), service.Methods().Get(j).Name())
				if !strings.Contains(string(page), call) {
					t.Errorf("protocol.md has no row %s", call)
				}
			}
		}
		return true
	})
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (go test -update rewrites it): -want +got\n%s", file, diff)
	}
}

func describeServices(b *strings.Builder, f protoreflect.FileDescriptor) {
	stream := map[bool]string{true: "stream "}
	for i := range f.Services().Len() {
		service := f.Services().Get(i)
		for j := range service.Methods().Len() {
			m := service.Methods().Get(j)
			fmt.Fprintf(b, "rpc %s(%s%s) returns (%s%s)\n", m.FullName(),
				stream[m.IsStreamingClient()], m.Input().FullName(), stream[m.IsStreamingServer()], m.Output().FullName())
		}
	}
}

func describeEnums(b *strings.Builder, enums protoreflect.EnumDescriptors) {
	for i := range enums.Len() {
		e := enums.Get(i)
		fmt.Fprintf(b, "enum %s\n", e.FullName())
		for j := range e.Values().Len() {
			fmt.Fprintf(b, "  %d %s\n", e.Values().Get(j).Number(), e.Values().Get(j).Name())
		}
	}
}

func describeMessages(b *strings.Builder, messages protoreflect.MessageDescriptors) {
	for i := range messages.Len() {
		m := messages.Get(i)
		fmt.Fprintf(b, "message %s\n", m.FullName())
		for j := range m.Fields().Len() {
			f := m.Fields().Get(j)
			var parts []string
			if f.IsList() {
				parts = append(parts, "repeated")
			}
			if f.HasOptionalKeyword() {
				parts = append(parts, "optional")
			}
			parts = append(parts, typeName(f), string(f.Name()))
			if o := f.ContainingOneof(); o != nil && !o.IsSynthetic() {
				parts = append(parts, "in "+string(o.Name()))
			}
			fmt.Fprintf(b, "  %d %s\n", f.Number(), strings.Join(parts, " "))
		}
		describeEnums(b, m.Enums())
		describeMessages(b, m.Messages())
	}
}

func typeName(f protoreflect.FieldDescriptor) string {
	switch {
	case f.Message() != nil:
		return string(f.Message().FullName())
	case f.Enum() != nil:
		return string(f.Enum().FullName())
	default:
		return f.Kind().String()
	}
}
