package podexec

import (
	"errors"
	"fmt"
	"io"

	"github.com/gorilla/websocket"
)

// The channels of a WebSocket: the first byte of every message names one.
const (
	channelStdin  = 0
	channelStdout = 1
	channelStderr = 2
	channelStatus = 3
	channelClose  = 255 // the message's second byte names the channel that is closed

	channelProtocol = "v5.channel.k8s.io"
)

// messages is where a WebSocket's messages come from, one at a time.
type messages interface {
	NextReader() (kind int, r io.Reader, err error)
}

// channels takes a WebSocket's messages apart as its reader asks for them.
type channels struct {
	in     messages
	stdout io.Reader // what is left of a message of stdout
	record *record
}

// Read returns stdout, and io.EOF once the other side has closed the WebSocket.
func (c *channels) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for {
		if c.stdout == nil {
			if err := c.next(); err != nil {
				return 0, err
			}
			continue
		}
		n, err := c.stdout.Read(p)
		if errors.Is(err, io.EOF) {
			c.stdout, err = nil, nil
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
}

// next takes one message.
func (c *channels) next() error {
	kind, r, err := c.in.NextReader()
	if err != nil {
		return ending(err)
	}
	if kind != websocket.BinaryMessage {
		return fmt.Errorf("%w: a message of text", errOutOfStep)
	}
	var channel [1]byte
	if _, err := io.ReadFull(r, channel[:]); err != nil {
		return fmt.Errorf("%w: a message without a channel: %w", errOutOfStep, err)
	}
	switch channel[0] {
	case channelStdout:
		c.stdout = r
		return nil
	case channelStderr:
		return c.record.keepStderr(r)
	case channelStatus:
		return c.record.keepStatus(r)
	case channelClose:
		return nil // the WebSocket's own end says as much
	}
	return fmt.Errorf("%w: a message for channel %d", errOutOfStep, channel[0])
}

// ending distinguishes a WebSocket's orderly end from its loss.
func ending(err error) error {
	var closed *websocket.CloseError
	if errors.As(err, &closed) && closed.Code == websocket.CloseNormalClosure {
		return io.EOF
	}
	return err
}
