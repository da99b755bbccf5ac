package cluster

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/quorlease/quorlease/cluster/calm"
	"github.com/quorlease/quorlease/cluster/disk"
	"github.com/quorlease/quorlease/cluster/events"
)

// openStores opens what raft keeps on disk and watches over it.
func (n *Node) openStores() error {
	var err error
	formed := n.identity.Record().Formed
	n.stores, err = disk.OpenStores(n.config.DataDir, formed, calm.New(n.logger.Named("snapshot")))
	if err != nil {
		if errors.Is(err, disk.ErrCorrupt) {
			return fmt.Errorf("%w: %w", ErrProtected, err)
		}
		return err
	}
	n.fsm.snapshots = n.stores.Snapshots
	election := raftConfig(n.config, n.id, nil).ElectionTimeout
	n.watchdog = disk.Watch(disk.Config{
		Limit: disk.StallLimit(election), OnStall: n.diskStalled, OnError: n.diskFailed,
		Logger: n.logger.Named("disk"),
	})
	space := disk.SpaceConfig{Path: n.config.DataDir, OnChange: n.spaceChanged, Logger: n.logger.Named("disk")}
	if n.config.MinFreeBytes > 0 {
		space.MinFree, space.MinPercent = n.config.MinFreeBytes, -1
	}
	if n.space, err = disk.WatchSpace(space); err != nil {
		return fmt.Errorf("watch free space: %w", err)
	}
	return nil
}

// diskStalled ends the node: raft's main loop hangs in the call and would keep
// the leadership for ever (R12).
func (n *Node) diskStalled(stall *disk.StallError) {
	n.events.Publish(events.Event{Kind: events.DiskStalled, Severity: events.Critical, Text: stall.Error()})
	n.fail(fmt.Errorf("%w: %w", ErrProtected, stall))
}

// diskFailed ends the node: a store that returned an error is never asked
// again (R14).
func (n *Node) diskFailed(err error) { n.fail(fmt.Errorf("%w: %w", ErrProtected, err)) }

func (n *Node) spaceChanged(r disk.SpaceReport) {
	event := events.Event{
		Kind: events.DiskLow, Severity: events.Critical, Value: strconv.FormatUint(r.Free, 10),
		Text: fmt.Sprintf("%d bytes are free, fewer than %d", r.Free, r.Need),
	}
	if !r.Low {
		event.Severity, event.Text = events.Info, fmt.Sprintf("%d bytes are free again", r.Free)
	}
	n.events.Publish(event)
}
