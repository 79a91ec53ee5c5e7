package sockets

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

const header = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"

// line is one of a table.
func line(address, state string) string {
	return "   0: " + address + " 00000000:0000 " + state + " 00000000:00000000 00:00000000 00000000  1000        0 4711 1 0000000000000000 100 0 0 10 0\n"
}

func TestListening(t *testing.T) {
	many := header
	for port := 1; port < 3*Max; port++ {
		many += line(fmt.Sprintf("0100007F:%04X", port), "0A")
	}
	if got := Listening([]byte(many)); len(got) != Max {
		t.Errorf("got %d of many, want %d", len(got), Max)
	}
	for name, test := range map[string]struct {
		table string
		want  []string
	}{
		"nothing":            {"", nil},
		"header":             {header + header, nil},
		"IPv4":               {header + line("0100007F:1F90", "0A") + line("00000000:0016", "0A"), []string{"0.0.0.0:22", "127.0.0.1:8080"}},
		"IPv6":               {line("00000000000000000000000001000000:1F90", "0A") + line("00000000000000000000000000000000:0001", "0A"), []string{"[::]:1", "[::1]:8080"}},
		"IPv4 in IPv6":       {line("0000000000000000FFFF00000100007F:1F90", "0A"), []string{"127.0.0.1:8080"}},
		"each once":          {strings.Repeat(line("0100007F:1F90", "0A"), 5), []string{"127.0.0.1:8080"}},
		"connections":        {line("0100007F:1F90", "01") + line("0100007F:1F91", "06"), nil},
		"port 0":             {line("0100007F:0000", "0A"), nil},
		"not an address":     {line("0100007G:1F90", "0A") + line("100007F:1F90", "0A") + line("0100007F1F900", "0A") + line("0100007F:1F9", "0A"), nil},
		"no number":          {strings.Replace(line("0100007F:1F90", "0A"), "0:", "0", 1), nil},
		"cut off":            {line("0100007F:1F90", "0A")[:20], nil},
		"a long line":        {"   0: " + strings.Repeat(" ", 1<<20) + line("0100007F:1F90", "0A"), nil},
		"without a line end": {strings.TrimSuffix(line("0100007F:1F90", "0A"), "\n"), []string{"127.0.0.1:8080"}},
	} {
		var got []string
		for _, a := range Listening([]byte(test.table)) {
			got = append(got, a.String())
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
}

func FuzzListening(f *testing.F) {
	f.Add([]byte(header + line("0100007F:1F90", "0A") + line("00000000000000000000000001000000:1F90", "0A")))
	f.Add([]byte(line("0000000000000000FFFF00000100007F:1F90", "0A")))
	f.Add([]byte("0: :0000 x 0A\n\n \x00:"))
	f.Fuzz(func(t *testing.T, table []byte) {
		got := Listening(table)
		if len(got) > Max || !slices.IsSortedFunc(got, func(a, b netip.AddrPort) int { return int(a.Port()) - int(b.Port()) }) {
			t.Fatalf("%d addresses, want at most %d in their order", len(got), Max)
		}
		var again string
		for _, a := range got {
			if !a.IsValid() || a.Port() == 0 || a.Addr().Zone() != "" {
				t.Fatalf("got %v, want an address and a port", a)
			}
			b := a.Addr().AsSlice()
			for word := range slices.Chunk(b, 4) {
				slices.Reverse(word)
			}
			again += line(fmt.Sprintf("%X:%04X", b, a.Port()), "0A")
		}
		if same := Listening([]byte(again)); !slices.Equal(same, got) {
			t.Fatalf("read again: got %v, want %v", same, got)
		}
	})
}
