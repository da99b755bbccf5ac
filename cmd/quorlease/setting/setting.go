// Package setting takes settings from the environment and from a file.
//
// A flag set is the one table of settings: the flag `--bootstrap-expect` is
// QUORLEASE_BOOTSTRAP_EXPECT in the environment and `bootstrap-expect` in a
// configuration file. The command line wins over the environment, the
// environment over the file, the file over the default.
package setting

import (
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/spf13/pflag"

	"github.com/quorlease/quorlease/cmd/quorlease/exit"
)

// environmentKey marks a flag that the environment may set.
const environmentKey = "quorlease-environment"

// EnvironmentName derives the variable of a flag.
func EnvironmentName(flag string) string {
	return "QUORLEASE_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// FromEnvironment lets the environment set every flag that is defined so far.
func FromEnvironment(flags *pflag.FlagSet) {
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Annotations == nil {
			f.Annotations = map[string][]string{}
		}
		f.Annotations[environmentKey] = []string{EnvironmentName(f.Name)}
	})
}

// HasEnvironment says whether the environment may set a flag.
func HasEnvironment(f *pflag.Flag) bool { return len(f.Annotations[environmentKey]) > 0 }

// Environment sets the flags that the command line did not.
func Environment(flags *pflag.FlagSet, lookup func(string) (string, bool)) error {
	var failed error
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed || !HasEnvironment(f) || failed != nil {
			return
		}
		name := EnvironmentName(f.Name)
		value, ok := lookup(name)
		if !ok || value == "" {
			return
		}
		if err := f.Value.Set(value); err != nil {
			failed = exit.Usagef("%s=%s", name, problem(f, value, err))
			return
		}
		markSet(f)
	})
	return failed
}

// setElsewhere marks a flag that got its value from the environment or from a
// file. Changed stays what it was: it speaks of the command line.
const setElsewhere = "quorlease-set"

func markSet(f *pflag.Flag) {
	if f.Annotations == nil {
		f.Annotations = map[string][]string{}
	}
	f.Annotations[setElsewhere] = []string{"true"}
}

// IsSet says whether a flag has a value of its own, wherever that came from.
func IsSet(f *pflag.Flag) bool {
	return f.Changed || len(f.Annotations[setElsewhere]) > 0
}

// File sets what neither the command line nor the environment did from
// a YAML mapping of flag names. It is strict: an unknown name, a name twice or
// a value of the wrong kind is an error with line and column.
func File(flags *pflag.FlagSet, name string, data []byte) error {
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		return exit.Usagef("%s: %s", name, exit.OneLine(yaml.FormatError(err, false, false)))
	}
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		entries, err := mappingValues(doc.Body)
		if err != nil {
			return exit.Usagef("%s:%s", name, err)
		}
		for _, entry := range entries {
			if err := fillFromEntry(flags, entry); err != nil {
				return exit.Usagef("%s:%s", name, err)
			}
		}
	}
	return nil
}

// mappingValues returns the entries of a mapping, however the parser spells
// one with a single entry.
func mappingValues(body ast.Node) ([]*ast.MappingValueNode, error) {
	switch n := body.(type) {
	case *ast.MappingNode:
		return n.Values, nil
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}, nil
	case *ast.CommentGroupNode, *ast.NullNode:
		return nil, nil
	default:
		return nil, fmt.Errorf("%s: a mapping of settings is expected", place(body))
	}
}

func fillFromEntry(flags *pflag.FlagSet, entry *ast.MappingValueNode) error {
	key := entry.Key.GetToken().Value
	f := flags.Lookup(key)
	if f == nil || !HasEnvironment(f) || key == "config" {
		return fmt.Errorf("%s: unknown setting %q; the names are those of the flags", place(entry.Key), key)
	}
	if IsSet(f) {
		return nil
	}
	value, err := scalarOrList(entry.Value)
	if err != nil {
		return fmt.Errorf("%s: %s: %w", place(entry.Value), key, err)
	}
	if err := f.Value.Set(value); err != nil {
		return fmt.Errorf("%s: %s: %s", place(entry.Value), key, problem(f, value, err))
	}
	markSet(f)
	return nil
}

// scalarOrList turns a value into what the flag would have been given: a list
// becomes its elements with commas between.
func scalarOrList(value ast.Node) (string, error) {
	switch n := value.(type) {
	case *ast.SequenceNode:
		var items []string
		for _, v := range n.Values {
			item, err := scalarOrList(v)
			if err != nil {
				return "", err
			}
			items = append(items, item)
		}
		return strings.Join(items, ","), nil
	case *ast.StringNode:
		return n.Value, nil
	case ast.ScalarNode:
		return n.GetToken().Value, nil
	default:
		return "", fmt.Errorf("a single value or a list is expected")
	}
}

func place(n ast.Node) string {
	at := n.GetToken().Position
	return fmt.Sprintf("%d:%d", at.Line, at.Column)
}
