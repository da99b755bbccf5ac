// Package room counts what the bodies of requests take of what they may: all of them, and
// those of each client, so that none of them fills it for all others.
package room

import (
	"errors"
	"sync"
)

// Why there is no room for a body.
var (
	// ErrFull: all bodies hold as much as they may.
	ErrFull = errors.New("no room for the body")
	// ErrShare: those of the client do.
	ErrShare = errors.New("no room for the client's body")
)

// Rooms are what all bodies take. It is safe for concurrent use.
type Rooms struct {
	mu sync.Mutex
	// most is what all of them may take, and share what those of one client may.
	most, share int64            // guarded by mu
	all         int64            // guarded by mu
	byClient    map[string]int64 // guarded by mu
}

// New returns Rooms of so many bytes for all bodies, and for those of one client.
func New(most, share int64) *Rooms {
	return &Rooms{most: most, share: share, byClient: make(map[string]int64)}
}

// Bound changes how much there may be. What is held already stays.
func (r *Rooms) Bound(most, share int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.most, r.share = most, share
}

// Held is what all bodies take, in bytes.
func (r *Rooms) Held() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all
}

// Open is room for a body of a client: nothing yet, with one user.
func (r *Rooms) Open(client string) *Room { return &Room{rooms: r, client: client, users: 1} }

// take takes so many bytes for a client.
func (r *Rooms) take(client string, n int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.all+n > r.most:
		return ErrFull
	case r.byClient[client]+n > r.share:
		return ErrShare
	}
	r.addLocked(client, n)
	return nil
}

// give gives so many back.
func (r *Rooms) give(client string, n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.addLocked(client, -n)
}

func (r *Rooms) addLocked(client string, n int64) {
	r.all += n
	if r.byClient[client] += n; r.byClient[client] == 0 {
		delete(r.byClient, client)
	}
}

// Room is what a body takes of what all of them may: as long as its client waits for an answer
// to begin or somebody works on it, who may do so for others when its client has gone. It is
// safe for concurrent use. Make one with Open.
type Room struct {
	rooms  *Rooms
	client string
	mu     sync.Mutex
	bytes  int64 // guarded by mu
	users  int   // guarded by mu
}

// Grow takes more, up to so many bytes in all, by its only user. The error is ErrFull or
// ErrShare, and nothing was taken then.
func (r *Room) Grow(to int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if to <= r.bytes {
		return nil
	}
	if err := r.rooms.take(r.client, to-r.bytes); err != nil {
		return err
	}
	r.bytes = to
	return nil
}

// Enter adds a user, also when there was none left.
func (r *Room) Enter() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.users++; r.users == 1 {
		r.rooms.give(r.client, -r.bytes)
	}
}

// Leave takes one away: the last one gives the room back.
func (r *Room) Leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.users--; r.users == 0 {
		r.rooms.give(r.client, r.bytes)
	}
}
