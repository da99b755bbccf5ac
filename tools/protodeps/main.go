// Command protodeps writes a descriptor set of the well-known messages that
// our protocol imports, taken from the Go packages that this module builds
// with, so that generating code needs no download.
package main

import (
	"fmt"
	"os"

	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: protodeps FILE")
		os.Exit(2)
	}
	set := &descriptorpb.FileDescriptorSet{}
	for _, file := range []protoreflect.FileDescriptor{
		anypb.File_google_protobuf_any_proto,
		durationpb.File_google_protobuf_duration_proto,
		timestamppb.File_google_protobuf_timestamp_proto,
		status.File_google_rpc_status_proto,
	} {
		set.File = append(set.File, protodesc.ToFileDescriptorProto(file))
	}
	data, err := proto.Marshal(set)
	if err == nil {
		err = os.WriteFile(os.Args[1], data, 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "write descriptor set:", err)
		os.Exit(1)
	}
}
