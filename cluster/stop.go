package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"github.com/quorlease/quorlease/cluster/progress"
)

// closeMax bounds Close: after that the process should exit whatever hangs
// (R40). closeTransferMax is what of it a leader may spend to hand over.
const (
	closeMax         = 10 * time.Second
	closeTransferMax = 4 * time.Second
	// closeReturnMax is what of it may pass until escrow has gone back.
	closeReturnMax = time.Second
)

// fail stops the node because going on is not safe. The first reason stays.
//
//nolint:contextcheck,nolintlint // Close has a deadline of its own, whatever ended the node.
func (n *Node) fail(err error) {
	n.mu.Lock()
	first := n.mu.err == nil
	if first {
		n.mu.err = err
	}
	n.mu.Unlock()
	if !first {
		return
	}
	n.logger.Error("node stops itself", "err", err)
	go func() { _ = n.Close() }()
}

// Done is closed when the node has stopped, by Close or by itself.
func (n *Node) Done() <-chan struct{} { return n.done }

// Err says why the node stopped itself: it wraps ErrProtected or ErrRemoved.
// Nil while it runs, and after a Close from outside.
func (n *Node) Err() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.mu.err
}

// Close stops the node within ten seconds and releases everything. A leader
// hands over first. Operations that were not proposed are answered ErrClosed,
// those that were and have no result ErrOutcomeUnknown as well. It is
// idempotent; later calls wait for the first.
func (n *Node) Close() error {
	n.closeOnce.Do(func() {
		released := make(chan struct{})
		go func() {
			defer close(released)
			n.release()
		}()
		timer := time.NewTimer(closeMax)
		defer timer.Stop()
		select {
		case <-released:
		case <-timer.C:
			n.noteClose(fmt.Errorf("close node: not finished within %s", closeMax))
		}
		n.door.Abandon()
		close(n.done)
	})
	<-n.done
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.mu.closeErr
}

func (n *Node) noteClose(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.closeErr = errors.Join(n.mu.closeErr, err)
}

// release stops what Open started, in this order:
//
//  1. The wallet, whose tokens go back, and the door: nobody comes in, what waits is
//     answered.
//  2. The leadership, where a healthy leader can hand it over.
//  3. What asks raft or other nodes: reads, announcements, the stream to the
//     leader. raft has to be alive to answer them.
//  4. raft is told to stop; its transport and every connection are closed before
//     waiting for it, because a silent peer would hold it (R40).
//  5. The goroutines that waited for raft.
//  6. The stores and the book of usage, then the lock on the data directory, and last the audit file,
//     whose disk may hang.
func (n *Node) release() {
	switch {
	case n.grants == nil:
	case n.Err() != nil:
		n.grants.Wallet.Close()
	default:
		n.grants.Leave(closeReturnMax)
	}
	n.door.Close(ErrClosed)
	if n.changer != nil && n.Err() == nil {
		ctx, cancel := context.WithTimeout(context.Background(), closeTransferMax)
		n.changer.Leave(ctx)
		cancel()
	}
	close(n.closing)
	if n.prober != nil {
		n.prober.Close()
	}
	n.forwarder.Close()
	n.early.Wait()
	n.stopRaft()
	n.metrics.Unregister()
	if n.space != nil {
		n.space.Close()
	}
	if n.watchdog != nil {
		n.watchdog.Close()
	}
	n.events.Close()
	if n.stores != nil {
		n.noteClose(wrap("close log store", n.stores.Close()))
	}
	n.noteClose(n.usage.Close())
	if n.identity != nil {
		n.noteClose(wrap("release data directory", n.identity.Close()))
	}
	n.noteClose(n.audit.Close())
}

// stragglers is how long to wait for goroutines that wait for raft after raft
// has gone: it may have left one without an answer for good (R1).
const stragglers = 200 * time.Millisecond

func (n *Node) stopRaft() {
	close(n.halt)
	var stopped raft.Future
	if n.raft != nil {
		// A proposal that raft has not looked at yet when it is told to stop is never answered.
		progress.Await(n.proposer.ended, stragglers)
		stopped = n.raft.Shutdown()
	}
	if n.transport != nil {
		n.transport.CloseStreams()
		n.noteClose(wrap("close transport", n.transport.Close()))
	}
	if n.outgoing != nil {
		n.outgoing.Close()
	}
	if n.server != nil {
		n.server.Stop()
	}
	if n.peers != nil {
		n.noteClose(wrap("close peer connections", n.peers.Close()))
	}
	switch {
	case n.listener != nil:
		n.noteClose(wrap("close peer listener", n.listener.Close()))
	case n.bound != nil:
		n.noteClose(wrap("close peer listener", n.bound.Close()))
	}
	if stopped != nil {
		n.noteClose(wrap("stop raft", stopped.Error()))
	}
	joined := make(chan struct{})
	go func() {
		defer close(joined)
		n.loops.Wait()
	}()
	if !progress.Await(joined, stragglers) {
		n.logger.Warn("raft left a proposal without an answer")
	}
}

// wrap adds what was being done, to an error only.
func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
