// Package limitsfile reads the YAML file in which operators write limits and
// retry budgets, and says what a limit means once every default is filled in.
//
// There are three forms of a limit, and this package is where they meet:
//
//   - the file, for people: rates as "400_000/min", sizes as "10s" of the rate;
//   - quorleasev1.Limit, the public protocol: tokens, hundredths of a percent,
//     absent where the default is meant;
//   - logv1.Limit, what is logged: complete, so that a later program with other
//     defaults replays the same state.
//
// Parse goes from the first to the second and Format back; Resolve goes from the
// second to the third and Describe back. All checks are in Resolve, so that a
// limit that comes as JSON is held to the same rules as one that comes as YAML;
// Parse adds the line and the column.
//
// A file may also say how callers behave (package callers): that is checked, and is
// in no other form.
//
// The file is strict (package strict): what is not understood is refused, not ignored.
// Everything here is pure.
package limitsfile
