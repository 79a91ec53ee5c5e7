package egress

import (
	"context"
	"net"
	"net/netip"
	"time"
)

// headStart is how long an address has before the next is tried beside it.
const headStart = 250 * time.Millisecond

// dialAny returns the first connection that comes about. Every dial it began has
// ended, or been closed, when it returns.
func (p *Proxy) dialAny(ctx context.Context, addrs []netip.Addr, port uint16) (net.Conn, netip.Addr, error) {
	ctx, cancel := context.WithCancel(ctx)
	type result struct {
		conn net.Conn
		addr netip.Addr
		err  error
	}
	results := make(chan result)
	var started, ended int
	start := func() {
		addr := addrs[started]
		started++
		go func() {
			conn, err := p.cfg.Dial(ctx, netip.AddrPortFrom(addr, port))
			results <- result{conn, addr, err}
		}()
	}
	defer func() {
		cancel()
		for ; ended < started; ended++ {
			if late := <-results; late.conn != nil {
				_ = late.conn.Close()
			}
		}
	}()
	start()
	next := time.NewTimer(headStart)
	defer next.Stop()
	var first error
	for {
		var more <-chan time.Time
		if started < len(addrs) {
			more = next.C
		}
		select {
		case r := <-results:
			ended++
			if r.err == nil {
				return r.conn, r.addr, nil
			}
			if first == nil {
				first = r.err
			}
			if started < len(addrs) {
				start()
				next.Reset(headStart)
			} else if ended == started {
				return nil, netip.Addr{}, first
			}
		case <-more:
			start()
			next.Reset(headStart)
		}
	}
}
