package python

import "encoding/binary"

// Python's import system compiles a source through a function that sets up the classes
// of syntax trees first, which takes 2 ms. A compiled file spares that: ours is nothing but
//
//	exec("…")
//
// which has the same source compiled the short way. A version that is not listed here
// does not look at these files, and compiles the source beside them.
type version struct {
	tag   string // as in the names of compiled files
	magic uint16
	code  []byte
	stack uint32
	// qualified reports whether code objects have a qualified name and a table of exceptions.
	qualified bool
}

// The code of each version loads the name exec and the constant 0, calls, and returns
// what the call returned. Zeros are room for the interpreter's caches.
var versions = []version{
	{tag: "310", magic: 3439, stack: 2, code: []byte{
		101, 0, // LOAD_NAME
		100, 0, // LOAD_CONST
		131, 1, // CALL_FUNCTION
		83, 0, // RETURN_VALUE
	}},
	{tag: "311", magic: 3495, stack: 3, qualified: true, code: []byte{
		151, 0, // RESUME
		2, 0, // PUSH_NULL
		101, 0, // LOAD_NAME
		100, 0, // LOAD_CONST
		166, 1, 0, 0, // PRECALL
		171, 1, 0, 0, 0, 0, 0, 0, 0, 0, // CALL
		83, 0, // RETURN_VALUE
	}},
	{tag: "312", magic: 3531, stack: 3, qualified: true, code: []byte{
		151, 0, // RESUME
		2, 0, // PUSH_NULL
		101, 0, // LOAD_NAME
		100, 0, // LOAD_CONST
		171, 1, 0, 0, 0, 0, 0, 0, // CALL
		83, 0, // RETURN_VALUE
	}},
	{tag: "313", magic: 3571, stack: 3, qualified: true, code: []byte{
		149, 0, // RESUME
		92, 0, // LOAD_NAME
		34, 0, // PUSH_NULL
		83, 0, // LOAD_CONST
		53, 1, 0, 0, 0, 0, 0, 0, // CALL
		36, 0, // RETURN_VALUE
	}},
}

// compile returns the compiled file of a module that executes source, in the form that
// Python's marshal reads. It is valid for every source, as Python does not compare the digest.
func (v version) compile(source []byte) []byte {
	le := binary.LittleEndian
	out := le.AppendUint16(nil, v.magic)
	out = append(out, '\r', '\n')
	out = le.AppendUint32(out, 1)         // by digest of the source, unchecked
	out = append(out, make([]byte, 8)...) // the digest
	sized := func(kind byte, data []byte) {
		out = le.AppendUint32(append(out, kind), uint32(len(data)))
		out = append(out, data...)
	}
	text := func(s string) { sized('u', []byte(s)) }
	tuple := func(items ...string) {
		out = append(out, ')', byte(len(items)))
		for _, s := range items {
			text(s)
		}
	}
	out = append(out, 'c')
	for range 3 { // arguments of the three kinds
		out = le.AppendUint32(out, 0)
	}
	if !v.qualified {
		out = le.AppendUint32(out, 0) // local variables
	}
	out = le.AppendUint32(out, v.stack)
	out = le.AppendUint32(out, 0) // flags
	sized('s', v.code)
	tuple(string(source)) // constants
	tuple("exec")         // names
	tuple()               // local variables, or all that live on in cells
	if v.qualified {
		sized('s', nil) // their kinds
	} else {
		tuple()
		tuple()
	}
	text("sitecustomize.py")
	text("<module>")
	if v.qualified {
		text("<module>")
	}
	out = le.AppendUint32(out, 1) // first line
	sized('s', nil)               // lines
	if v.qualified {
		sized('s', nil) // exceptions
	}
	return out
}
