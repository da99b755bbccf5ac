package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

// curl is as much of the program as documents and scripts need, so that a test
// does not depend on what is installed. It knows -s, -d, also of a file, -H and one
// address, and ends with an error for anything else.
func curl() {
	if err := curlRun(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func curlRun(args []string, out io.Writer) error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	method, body, address := http.MethodGet, "", ""
	header := http.Header{}
	for len(args) > 0 {
		word := args[0]
		args = args[1:]
		switch {
		case word == "-s":
		case word == "-d" && len(args) > 0:
			method, body, args = http.MethodPost, args[0], args[1:]
			if name, is := strings.CutPrefix(body, "@"); is {
				data, err := os.ReadFile(name)
				if err != nil {
					return err
				}
				body = string(data)
			}
			if header.Get("Content-Type") == "" {
				header.Set("Content-Type", "application/x-www-form-urlencoded")
			}
		case word == "-H" && len(args) > 0:
			name, value, _ := strings.Cut(args[0], ":")
			header.Set(name, strings.TrimSpace(value))
			args = args[1:]
		case !strings.HasPrefix(word, "-") && address == "":
			address = word
		default:
			return fmt.Errorf("curl: %q: the test's own curl knows -s, -d and -H only", word)
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(body))
	if err != nil {
		return err
	}
	request.Header = header
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(out, response.Body); err != nil {
		return err
	}
	return nil
}
