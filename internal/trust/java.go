package trust

import (
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"fmt"
	"unicode/utf16"
)

// storePassword is what everybody's trust store has: it keeps nothing secret.
const storePassword = "changeit"

// javaStore writes a JKS file of trusted certificates: the format that every JVM reads
// and that needs no cryptography but a digest.
func javaStore(certificates [][]byte) []byte {
	var b bytes.Buffer
	put := func(v any) { _ = binary.Write(&b, binary.BigEndian, v) } // to memory: never fails
	text := func(s string) {
		put(uint16(len(s)))
		b.WriteString(s)
	}
	put(uint32(0xfeedfeed))
	put(uint32(2)) // version
	put(uint32(len(certificates)))
	for i, der := range certificates {
		put(uint32(2)) // a trusted certificate
		text(fmt.Sprintf("ca%d", i))
		put(uint64(0)) // when it was added
		text("X.509")
		put(uint32(len(der)))
		b.Write(der)
	}
	digest := sha1.New()
	for _, c := range utf16.Encode([]rune(storePassword)) {
		_ = binary.Write(digest, binary.BigEndian, c)
	}
	digest.Write([]byte("Mighty Aphrodite"))
	digest.Write(b.Bytes())
	return digest.Sum(b.Bytes())
}
