package disk

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/bits"
	"os"
)

// bbolt trusts the pages of its file: over a damaged one it panics in a
// goroutine of its own, where nobody can catch it, faults where the file is too
// short, or runs in circles. So the file is read once before bbolt sees it:
// every page that the newest transaction refers to has to be where it should,
// once, with elements that lie inside it one behind the other and keys in order.

const (
	metaMagic   = 0xED0CDAED
	metaVersion = 2
	// A meta page's content: six fields of the header and root bucket, the free
	// list, the high-water mark and the transaction, then the checksum.
	metaLen     = 64
	metaSumAt   = 56
	pageHeader  = 16
	elementLen  = 16
	bucketLen   = 16
	noFreelist  = ^uint64(0)
	pageSizeMin = 512
	pageSizeMax = 64 << 10

	branchPage   = 0x01
	leafPage     = 0x02
	metaPage     = 0x04
	freelistPage = 0x10
	// bucketElement marks a leaf's element as a bucket.
	bucketElement = 0x01
)

// pages checks one file.
type pages struct {
	file io.ReaderAt
	size int64
	// high is the first page that is not used, pageSize in bytes.
	high, pageSize uint64
	// seen has one bit a page.
	seen []uint64
	// inside: below a bucket of the root. Raft's store has no buckets in
	// buckets, and small ones that overlap would take for ever.
	inside bool
}

// meta is what counts of a meta page.
type meta struct {
	pageSize                     uint32
	root, freelist, high, number uint64
}

// checkPages reads the bbolt file at path and refuses what bbolt could not.
func checkPages(path string) (err error) {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("open log store %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	st, err := f.Stat()
	if err != nil {
		return fmt.Errorf("open log store %s: %w", path, err)
	}
	// An empty file is one that was about to be made.
	if st.Size() == 0 {
		return nil
	}
	p := &pages{file: f, size: st.Size()}
	if err := p.check(); err != nil {
		return fmt.Errorf("log store %s %w: %w", path, ErrCorrupt, err)
	}
	return nil
}

func (p *pages) check() error {
	first, err := p.meta(0)
	if err != nil {
		return err
	}
	size := uint64(first.pageSize)
	if size < pageSizeMin || size > pageSizeMax || bits.OnesCount64(size) != 1 {
		return fmt.Errorf("pages of %d bytes", size)
	}
	p.pageSize = size
	// bbolt writes one meta page or the other and syncs between: a broken one
	// is not a commit that was cut off, its checksum fits into one sector.
	newest, err := p.meta(1)
	if err != nil {
		return err
	}
	if newest.pageSize != first.pageSize {
		return fmt.Errorf("pages of %d and of %d bytes", first.pageSize, newest.pageSize)
	}
	if first.number > newest.number {
		newest = first
	}
	if newest.high > uint64(p.size)/size {
		return fmt.Errorf("%d bytes, too short for %d pages of %d", p.size, newest.high, size)
	}
	p.high = newest.high
	p.seen = make([]uint64, newest.high/64+1)
	if newest.freelist != noFreelist {
		if _, err := p.page(newest.freelist, freelistPage); err != nil {
			return err
		}
	}
	return p.tree(newest.root, nil, nil)
}

// meta reads meta page id.
func (p *pages) meta(id uint64) (meta, error) {
	b := make([]byte, pageHeader+metaLen)
	if err := p.read(b, int64(id*p.pageSize)); err != nil {
		return meta{}, err
	}
	if got := binary.NativeEndian.Uint64(b); got != id || binary.NativeEndian.Uint16(b[8:]) != metaPage {
		return meta{}, fmt.Errorf("meta page %d is not one", id)
	}
	b = b[pageHeader:]
	sum := fnv.New64a()
	_, _ = sum.Write(b[:metaSumAt])
	switch {
	case binary.NativeEndian.Uint32(b) != metaMagic:
		return meta{}, fmt.Errorf("meta page %d is not one", id)
	case binary.NativeEndian.Uint32(b[4:]) != metaVersion:
		return meta{}, fmt.Errorf("meta page %d has version %d", id, binary.NativeEndian.Uint32(b[4:]))
	case sum.Sum64() != binary.NativeEndian.Uint64(b[metaSumAt:]):
		return meta{}, fmt.Errorf("meta page %d has a wrong checksum", id)
	}
	return meta{
		pageSize: binary.NativeEndian.Uint32(b[8:]),
		root:     binary.NativeEndian.Uint64(b[16:]), freelist: binary.NativeEndian.Uint64(b[32:]),
		high: binary.NativeEndian.Uint64(b[40:]), number: binary.NativeEndian.Uint64(b[48:]),
	}, nil
}

func (p *pages) read(b []byte, at int64) error {
	_, err := p.file.ReadAt(b, at)
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("ends at %d bytes", p.size)
	}
	return err
}

// page reads page id with those it overflows into, none of which may have been
// referred to before. flags is what it has to be, 0 for branch or leaf.
func (p *pages) page(id uint64, flags uint16) ([]byte, error) {
	if id < 2 || id >= p.high {
		return nil, fmt.Errorf("page %d of %d is referred to", id, p.high)
	}
	header := make([]byte, pageHeader)
	if err := p.read(header, int64(id*p.pageSize)); err != nil {
		return nil, err
	}
	got := binary.NativeEndian.Uint16(header[8:])
	if self := binary.NativeEndian.Uint64(header); self != id {
		return nil, fmt.Errorf("page %d says that it is page %d", id, self)
	}
	if flags != 0 && got != flags || flags == 0 && got != branchPage && got != leafPage {
		return nil, fmt.Errorf("page %d has the flags %#x", id, got)
	}
	end := id + uint64(binary.NativeEndian.Uint32(header[12:])) + 1
	if end > p.high {
		return nil, fmt.Errorf("page %d of %d reaches to page %d", id, p.high, end-1)
	}
	for n := id; n < end; n++ {
		if p.seen[n/64]&(1<<(n%64)) != 0 {
			return nil, fmt.Errorf("page %d is referred to twice", n)
		}
		p.seen[n/64] |= 1 << (n % 64)
	}
	b := make([]byte, (end-id)*p.pageSize)
	return b, p.read(b, int64(id*p.pageSize))
}

// tree checks the page and everything below it. Its keys have to be at least
// from and below to, where these are given.
func (p *pages) tree(id uint64, from, to []byte) error {
	b, err := p.page(id, 0)
	if err != nil {
		return err
	}
	if err := p.elements(b, from, to); err != nil {
		return fmt.Errorf("page %d: %w", id, err)
	}
	return nil
}

// elements checks a branch or leaf that is in memory. It ends, because no page
// is read twice.
func (p *pages) elements(b, from, to []byte) error {
	isBranch := binary.NativeEndian.Uint16(b[8:]) == branchPage
	count := int(binary.NativeEndian.Uint16(b[10:]))
	if isBranch && count == 0 || pageHeader+count*elementLen > len(b) {
		return fmt.Errorf("%d elements in %d bytes", count, len(b))
	}
	// bbolt writes keys and values without a gap behind all elements. A number of
	// elements or a length that was changed leaves one, and hides entries.
	packed := uint64(pageHeader + count*elementLen)
	for i := range count {
		key, value, err := element(b, i, isBranch)
		if err != nil {
			return err
		}
		start, _, end := place(b, i, isBranch)
		if start != packed {
			return fmt.Errorf("element %d of %d lies at %d, want %d", i, count, start, packed)
		}
		packed = end
		next, err := keyAfter(b, i, isBranch, to)
		if err != nil {
			return err
		}
		if from != nil && bytes.Compare(key, from) < 0 || next != nil && bytes.Compare(key, next) >= 0 {
			return fmt.Errorf("the key of element %d is not in order", i)
		}
		if isBranch {
			err = p.tree(binary.NativeEndian.Uint64(value), key, next)
		} else if binary.NativeEndian.Uint32(b[pageHeader+i*elementLen:])&bucketElement != 0 {
			err = p.bucket(value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// keyAfter returns the key of the element behind the i-th, or last behind the
// last one.
func keyAfter(b []byte, i int, isBranch bool, last []byte) ([]byte, error) {
	if i+1 >= int(binary.NativeEndian.Uint16(b[10:])) {
		return last, nil
	}
	key, _, err := element(b, i+1, isBranch)
	return key, err
}

// element returns the key of an element, and its value, which of a branch is
// the id of the page below.
func element(b []byte, i int, isBranch bool) (key, value []byte, err error) {
	start, keyEnd, end := place(b, i, isBranch)
	if at := uint64(pageHeader + i*elementLen); start < at+elementLen || end > uint64(len(b)) {
		return nil, nil, fmt.Errorf("element %d lies outside", i)
	}
	key, value = b[start:keyEnd:keyEnd], b[keyEnd:end]
	if isBranch {
		at := pageHeader + i*elementLen
		value = b[at+8 : at+elementLen]
	}
	return key, value, nil
}

// place returns where the key of an element begins and ends, and its value, which
// a branch has none of there.
func place(b []byte, i int, isBranch bool) (start, keyEnd, end uint64) {
	at := pageHeader + i*elementLen
	head := b[at : at+elementLen]
	pos, keyLen, valueLen := binary.NativeEndian.Uint32(head[4:]), binary.NativeEndian.Uint32(head[8:]), uint32(0)
	if isBranch {
		pos, keyLen = binary.NativeEndian.Uint32(head), binary.NativeEndian.Uint32(head[4:])
	} else {
		valueLen = binary.NativeEndian.Uint32(head[12:])
	}
	start = uint64(at) + uint64(pos)
	keyEnd = start + uint64(keyLen)
	return start, keyEnd, keyEnd + uint64(valueLen)
}

// bucket checks what lies below an element that is a bucket; a small one lies
// in the element itself.
func (p *pages) bucket(value []byte) error {
	if len(value) < bucketLen || p.inside {
		return fmt.Errorf("a bucket of %d bytes, in another: %v", len(value), p.inside)
	}
	p.inside = true
	defer func() { p.inside = false }()
	if root := binary.NativeEndian.Uint64(value); root != 0 {
		return p.tree(root, nil, nil)
	}
	inline := value[bucketLen:]
	if len(inline) < pageHeader || binary.NativeEndian.Uint16(inline[8:]) != leafPage {
		return errors.New("a bucket without a page")
	}
	return p.elements(inline, nil, nil)
}
