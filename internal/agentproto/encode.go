package agentproto

import "encoding/binary"

// A Message is one of the request or reply types of this package, as a pointer.
type Message interface {
	append([]byte) []byte
	parse(*decoder)
}

// Marshal encodes a message.
func Marshal(m Message) []byte { return m.append(nil) }

func appendUint[T ~uint8 | ~uint16 | ~uint32 | ~uint64](b []byte, v T) []byte {
	return binary.AppendUvarint(b, uint64(v))
}

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

func appendText[T ~string | ~[]byte](b []byte, s T) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

func appendStrings(b []byte, list []string) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, s := range list {
		b = appendText(b, s)
	}
	return b
}
