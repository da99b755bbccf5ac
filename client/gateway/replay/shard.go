package replay

import (
	"encoding/binary"
	"sync"
	"time"

	"github.com/quorlease/quorlease/client/gateway/canon"
)

const (
	// chunkSize is how much of a shard's log is allocated at once. Answers of up to inlineMax bytes
	// are in it, and larger ones beside it, so that little of a chunk stays unused.
	chunkSize = 32 << 10
	inlineMax = 2 << 10
	// indexCost is what finds an answer: an entry of a map, however full that is.
	indexCost = 64
	// fixed is what stands before an answer in the log: its key, its payload, when it was kept,
	// its status, how long its headers and its body are, and whether it is beside the log.
	fixed = 2*len(canon.Sum{}) + 8 + 2 + 4 + 4 + 1
)

// shard is a part of all keys. Its answers are in a log in the order in which they were kept, which
// is the one in which they go: an answer costs its bytes and little else.
type shard struct {
	store *Store

	mu sync.Mutex
	// flying has the payloads of the keys in flight, and kept where answers are.
	flying map[canon.Sum]canon.Sum // guarded by mu
	kept   map[canon.Sum]place     // guarded by mu
	// beside are the answers that the log has no room for.
	beside map[canon.Sum][]byte // guarded by mu
	// chunks are the log, the oldest first; first is the number of that one, and at where the
	// oldest answer is in it.
	chunks [][]byte // guarded by mu
	first  uint32   // guarded by mu
	at     int      // guarded by mu
	// timer is set while there are answers, and forgets what is too old.
	timer  *time.Timer // guarded by mu
	closed bool        // guarded by mu
}

// place is where an answer is: the number of its chunk, and the offset there.
type place struct{ chunk, at uint32 }

func (h *shard) open(s *Store) {
	h.store = s
	h.flying, h.kept = make(map[canon.Sum]canon.Sum), make(map[canon.Sum]place)
	h.beside = make(map[canon.Sum][]byte)
}

// close forgets everything that is kept.
func (h *shard) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for h.dropLocked() {
	}
	if h.timer != nil {
		h.timer.Stop()
	}
}

// expire forgets what is too old, and comes again when the next answer is.
func (h *shard) expire() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.expireLocked()
	h.armLocked()
}

func (h *shard) expireLocked() {
	for {
		left, there := h.leftLocked()
		if !there || left > 0 {
			return
		}
		h.dropLocked()
	}
}

// armLocked has expire called when the oldest answer is too old.
func (h *shard) armLocked() {
	left, there := h.leftLocked()
	switch {
	case !there || h.closed:
		if h.timer != nil {
			h.timer.Stop()
		}
	case h.timer == nil:
		h.timer = time.AfterFunc(left, h.expire)
	default:
		h.timer.Reset(left)
	}
}

// leftLocked is for how long the oldest answer is still kept.
func (h *shard) leftLocked() (left time.Duration, there bool) {
	if len(h.kept) == 0 {
		return 0, false
	}
	r := h.readLocked(place{h.first, uint32(h.at)})
	return r.at + h.store.bounds.Load().Keep - h.store.now(), true
}

// shed forgets the oldest answers until something comes free. It is false where there are none.
func (h *shard) shed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	before := len(h.chunks) + len(h.beside)
	for h.dropLocked() {
		h.store.counted.evicted.Add(1)
		if len(h.chunks)+len(h.beside) < before {
			return true
		}
	}
	return false
}

// dropLocked forgets the oldest answer, and its chunk with the last one in it. It is false where there
// is none.
func (h *shard) dropLocked() bool {
	if len(h.kept) == 0 {
		return false
	}
	r := h.readLocked(place{h.first, uint32(h.at)})
	delete(h.kept, r.key)
	taken := int64(indexCost)
	if text, there := h.beside[r.key]; there {
		taken += int64(cap(text))
		delete(h.beside, r.key)
	}
	if h.at += r.size; h.at == len(h.chunks[0]) {
		taken += int64(cap(h.chunks[0]))
		h.chunks[0] = nil
		h.chunks, h.first, h.at = h.chunks[1:], h.first+1, 0
	}
	h.store.taken.Add(-taken)
	return true
}

// growLocked makes room for so many bytes in the log. The mutex is not held while others make
// it. It is false where there is none.
func (h *shard) growLocked(n int) bool {
	for !h.fitsLocked(n) {
		h.mu.Unlock()
		enough := h.store.reserve(chunkSize)
		h.mu.Lock()
		switch {
		case !enough:
			h.store.counted.large.Add(1)
			return false
		case h.fitsLocked(n):
			// Somebody else has made it meanwhile: of all chunks only the last one may be empty.
			h.store.taken.Add(-chunkSize)
		default:
			h.chunks = append(h.chunks, make([]byte, 0, chunkSize))
		}
	}
	return true
}

func (h *shard) fitsLocked(n int) bool {
	if len(h.chunks) == 0 {
		return false
	}
	last := h.chunks[len(h.chunks)-1]
	return cap(last)-len(last) >= n
}

// writeLocked puts an answer at the end of the log, which has room for it.
func (h *shard) writeLocked(t *Turn, text []byte, inline bool) {
	last := len(h.chunks) - 1
	log := h.chunks[last]
	h.kept[t.key] = place{h.first + uint32(last), uint32(len(log))}
	log = append(log, t.key[:]...)
	log = append(log, t.payload[:]...)
	log = binary.LittleEndian.AppendUint64(log, uint64(h.store.now()))
	log = binary.LittleEndian.AppendUint16(log, uint16(t.status))
	log = binary.LittleEndian.AppendUint32(log, uint32(t.head))
	log = binary.LittleEndian.AppendUint32(log, uint32(len(text)))
	if inline {
		log = append(append(log, 0), text...)
	} else {
		log = append(log, 1)
		h.beside[t.key] = text
	}
	h.chunks[last] = log
}

// record is an answer as the log has it.
type record struct {
	key, payload canon.Sum
	at           time.Duration
	status       int
	// text is the headers, as many bytes as head says, and then the body.
	text []byte
	head int
	// size is what it takes of the log.
	size int
}

func (h *shard) readLocked(p place) (r record) {
	log := h.chunks[p.chunk-h.first][p.at:]
	n := copy(r.key[:], log)
	n += copy(r.payload[:], log[n:])
	r.at = time.Duration(binary.LittleEndian.Uint64(log[n:]))
	r.status = int(binary.LittleEndian.Uint16(log[n+8:]))
	r.head = int(binary.LittleEndian.Uint32(log[n+10:]))
	length := int(binary.LittleEndian.Uint32(log[n+14:]))
	if log[n+18] != 0 {
		r.text, r.size = h.beside[r.key], fixed
		return r
	}
	r.text, r.size = log[fixed:fixed+length:fixed+length], fixed+length
	return r
}
