// Package file reads the file that configures a gateway, and makes the configuration of
// one that has none.
//
// The file is YAML, and strict: what is not understood is refused with its line, field and
// value, and nothing is left out in silence. It holds no secret: keys are in files of their
// own or in the environment, which Secrets reads, so that this package opens nothing.
//
// What is read is checked as package gateway and package who check it, so that a mistake has
// its line. docs/reference/gateway-file.md explains every field.
package file
