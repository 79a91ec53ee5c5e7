// Package wire encodes messages as their fields in order: numbers as varints, and texts
// and lists after their length. Decoding takes input from hostile peers, and allocates no
// more than the input can fill.
package wire

import (
	"encoding/binary"
	"fmt"
	"math"
)

// A Message is a pointer to a type whose fields travel.
type Message interface {
	// Fields names the fields in their order on the wire.
	Fields(*Coder)
}

// Append appends a message to b.
func Append(b []byte, m Message) []byte {
	c := Coder{b: b}
	m.Fields(&c)
	return c.b
}

// Decode decodes what [Append] appended into m, which should be zero, and returns what
// follows it. Byte slices in m may alias b.
func Decode(b []byte, m Message) (rest []byte, err error) {
	c := Coder{b: b, decoding: true}
	m.Fields(&c)
	return c.b, c.err
}

// MaxList bounds the elements of any list in a message, so that a small message
// cannot make its receiver allocate a large one.
const MaxList = 1 << 17

// A Coder appends fields to b or, when it decodes, takes them off the front of b. After
// the first error a field is decoded as zero, so that only the end need look at err.
type Coder struct {
	b        []byte
	decoding bool
	err      error
}

func (c *Coder) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
	c.b = nil
}

// Fields encodes or decodes fields, of which it gets pointers.
func (c *Coder) Fields(fields ...any) {
	for _, f := range fields {
		switch v := f.(type) {
		case *uint64:
			number(c, v)
		case *uint32:
			number(c, v)
		case *uint16:
			number(c, v)
		case *uint8:
			number(c, v)
		case *int64:
			c.signed(v)
		case *bool:
			c.bool(v)
		case *string:
			text(c, v)
		case *[]byte:
			text(c, v)
		case *[]string:
			List(c, v, 1, text)
		default:
			panic(fmt.Sprintf("wire: a field of type %T", f))
		}
	}
}

// uint decodes a number of at most limit.
func (c *Coder) uint(limit uint64) uint64 {
	if c.err != nil {
		return 0
	}
	v, n := binary.Uvarint(c.b)
	switch {
	case n == 0:
		c.fail("ends in the middle of a number")
		return 0
	case n < 0 || v > limit:
		c.fail("a number is larger than %d", limit)
		return 0
	case n > 1 && c.b[n-1] == 0:
		c.fail("a number is longer than it need be")
		return 0
	}
	c.b = c.b[n:]
	return v
}

func number[T uint8 | uint16 | uint32 | uint64](c *Coder, v *T) {
	if c.decoding {
		*v = T(c.uint(uint64(^T(0))))
	} else {
		c.b = binary.AppendUvarint(c.b, uint64(*v))
	}
}

func (c *Coder) bool(v *bool) {
	switch {
	case c.decoding:
		*v = c.uint(1) == 1
	case *v:
		c.b = append(c.b, 1)
	default:
		c.b = append(c.b, 0)
	}
}

func (c *Coder) signed(v *int64) {
	if !c.decoding {
		c.b = binary.AppendVarint(c.b, *v)
		return
	}
	*v = 0
	if c.err != nil {
		return
	}
	decoded, n := binary.Varint(c.b)
	if n <= 0 || n > 1 && c.b[n-1] == 0 {
		c.fail("damaged signed number")
		return
	}
	*v, c.b = decoded, c.b[n:]
}

// text codes a string, or bytes, which are then a part of the input.
func text[T string | []byte](c *Coder, v *T) {
	if !c.decoding {
		c.b = binary.AppendUvarint(c.b, uint64(len(*v)))
		c.b = append(c.b, *v...)
		return
	}
	var none T
	*v = none
	n := c.uint(math.MaxUint64)
	if n > uint64(len(c.b)) {
		c.fail("a string of %d bytes in the %d that are left", n, len(c.b))
		return
	}
	if n > 0 {
		*v = T(c.b[:n:n])
		c.b = c.b[n:]
	}
}

// List codes a list whose elements take at least size bytes each. No more is allocated
// than can follow.
func List[T any](c *Coder, v *[]T, size int, element func(*Coder, *T)) {
	if !c.decoding {
		c.b = binary.AppendUvarint(c.b, uint64(len(*v)))
		for i := range *v {
			element(c, &(*v)[i])
		}
		return
	}
	*v = nil
	n := c.uint(math.MaxUint64)
	if n > MaxList || n > uint64(len(c.b)/size) {
		c.fail("a list of %d elements in the %d bytes that are left", n, len(c.b))
		return
	}
	if n == 0 {
		return
	}
	all := make([]T, n)
	for i := range all {
		if element(c, &all[i]); c.err != nil {
			return
		}
	}
	*v = all
}
