package scale

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// pauseMetric is the histogram in which a node counts its pauses for snapshots.
const pauseMetric = "quorlease_snapshot_pause_seconds"

// entriesMetric counts the log entries that a node has applied.
const entriesMetric = "quorlease_log_entries_total"

// exported is what one node has counted so far: its entries, and its pauses.
type exported struct {
	entries int64
	count   int64
	sum     time.Duration
	// ends are those of the histogram's ranges, in their order, and within counts what
	// is not above each.
	ends   []time.Duration
	within []int64
}

// exported asks every node.
func (c *cluster) exported(ctx context.Context) ([]exported, error) {
	all := make([]exported, c.nodes.Len())
	for i := range all {
		if err := scrape(ctx, c.nodes.HTTP(i), &all[i]); err != nil {
			return nil, fmt.Errorf("read the metrics of %s: %w", c.nodes.ID(i), err)
		}
	}
	return all, nil
}

// scrapeWait is how long a node may take to say its metrics, and scrapeMost bounds how
// much that may be, in bytes.
const (
	scrapeWait = 5 * time.Second
	scrapeMost = 16 << 20
)

func scrape(ctx context.Context, address string, e *exported) error {
	ctx, cancel := context.WithTimeout(ctx, scrapeWait)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		return err
	}
	// Nothing stays open: the node is to end.
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	return e.read(io.LimitReader(response.Body, scrapeMost))
}

// read finds the histogram in what a node exports.
func (e *exported) read(text io.Reader) error {
	seconds := func(text string) (time.Duration, error) {
		value, err := strconv.ParseFloat(text, 64)
		return time.Duration(value * float64(time.Second)), err
	}
	found := false
	lines := bufio.NewScanner(text)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), " ")
		if name == entriesMetric {
			// A count that is large is written as 1.5e+06.
			count, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return fmt.Errorf("%s: %w", lines.Text(), err)
			}
			e.entries = int64(count)
		}
		rest, ours := strings.CutPrefix(name, pauseMetric)
		if !ours {
			continue
		}
		var err error
		switch end, bucket := strings.CutPrefix(rest, `_bucket{le="`); {
		case bucket && !strings.HasPrefix(end, "+Inf"):
			var at time.Duration
			var count int64
			if at, err = seconds(strings.TrimSuffix(end, `"}`)); err == nil {
				count, err = strconv.ParseInt(value, 10, 64)
			}
			e.ends, e.within = append(e.ends, at), append(e.within, count)
		case rest == "_sum":
			e.sum, err = seconds(value)
		case rest == "_count":
			found = true
			e.count, err = strconv.ParseInt(value, 10, 64)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", lines.Text(), err)
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	if !found {
		return fmt.Errorf("there is no %s", pauseMetric)
	}
	return nil
}

// since is what came after another.
func (e *exported) since(before *exported) exported {
	now := exported{
		entries: e.entries - before.entries, count: e.count - before.count, sum: e.sum - before.sum,
		ends: e.ends, within: slices.Clone(e.within),
	}
	for i := range min(len(now.within), len(before.within)) {
		now.within[i] -= before.within[i]
	}
	return now
}

// longest is how long one of them was at most: no longer than the end of its range, and
// no longer than what the others leave of the sum if each was as short as its range
// lets it be. Of one that is exact.
func (e *exported) longest() time.Duration {
	if e.count == 0 {
		return 0
	}
	left, below, start := e.sum, int64(0), time.Duration(0)
	last := e.sum
	others := e.count - 1
	for i, within := range e.within {
		here := min(within-below, others)
		left -= time.Duration(here) * start
		others -= here
		if within == e.count {
			last = e.ends[i]
			break
		}
		below, start = within, e.ends[i]
	}
	return min(left, last)
}
