package agentproto

import (
	"encoding/binary"
	"fmt"
	"math"
)

// maxList bounds the elements of any list in a message, so that a small message
// cannot make its receiver allocate a large one.
const maxList = 1 << 17

// Unmarshal decodes what [Marshal] encoded into m, which should be zero. Bytes
// after the last known field are ignored, so that fields can be added; anything
// else that is not exactly right is a *[ProtocolError]. Byte slices in m may
// alias b.
func Unmarshal(b []byte, m Message) error {
	d := decoder{b: b}
	m.parse(&d)
	if d.err != nil {
		return protocolErrorf("%T: %v", m, d.err)
	}
	return nil
}

// A decoder takes fields off the front of b. After the first error every method
// returns a zero value, so that only the end need look at err.
type decoder struct {
	b   []byte
	err error
}

func (d *decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf(format, args...)
	}
	d.b = nil
}

func (d *decoder) uint(limit uint64) uint64 {
	if d.err != nil {
		return 0
	}
	v, n := binary.Uvarint(d.b)
	switch {
	case n == 0:
		d.fail("ends in the middle of a number")
		return 0
	case n < 0 || v > limit:
		d.fail("a number is larger than %d", limit)
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) uint64() uint64 { return d.uint(math.MaxUint64) }
func (d *decoder) uint32() uint32 { return uint32(d.uint(math.MaxUint32)) }
func (d *decoder) uint16() uint16 { return uint16(d.uint(math.MaxUint16)) }
func (d *decoder) uint8() uint8   { return uint8(d.uint(math.MaxUint8)) }
func (d *decoder) bool() bool     { return d.uint(1) == 1 }

func (d *decoder) int64() int64 {
	if d.err != nil {
		return 0
	}
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.fail("damaged signed number")
		return 0
	}
	d.b = d.b[n:]
	return v
}

// bytes returns the next byte string, as a part of the input.
func (d *decoder) bytes() []byte {
	n := d.uint(math.MaxUint64)
	if n > uint64(len(d.b)) {
		d.fail("a string of %d bytes in the %d that are left", n, len(d.b))
		return nil
	}
	if n == 0 {
		return nil
	}
	s := d.b[:n:n]
	d.b = d.b[n:]
	return s
}

func (d *decoder) string() string { return string(d.bytes()) }

// count returns the length of a list whose elements take at least size bytes
// each, having made sure that so many can follow.
func (d *decoder) count(size int) int {
	n := d.uint(math.MaxUint64)
	if n > maxList || n > uint64(len(d.b)/size) {
		d.fail("a list of %d elements in the %d bytes that are left", n, len(d.b))
		return 0
	}
	return int(n)
}

func (d *decoder) strings() []string { return parseList(d, 1, (*decoder).string) }

// parseList decodes a list whose elements take at least size bytes each.
func parseList[T any](d *decoder, size int, element func(*decoder) T) []T {
	n := d.count(size)
	if n == 0 {
		return nil
	}
	list := make([]T, 0, n)
	for range n {
		v := element(d)
		if d.err != nil {
			return nil
		}
		list = append(list, v)
	}
	return list
}
