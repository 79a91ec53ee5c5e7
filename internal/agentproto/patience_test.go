package agentproto

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// A client that says nothing is given up after a while, unless its stream may rest.
func TestPatience(t *testing.T) {
	const patience = time.Second
	t.Run("bounded", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			client, server := net.Pipe()
			defer client.Close()
			go func() { _, _ = client.Read(make([]byte, 4096)) }()
			start := time.Now()
			if err := Server(server, Hello{}, patience, handlerFunc(echoHandler)); err == nil || time.Since(start) != patience {
				t.Errorf("ended with %v after %v, want an error, time.Since(start) = %v", err, time.Since(start), patience)
			}
		})
	})
	t.Run("unbounded", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			client, server := net.Pipe()
			served := make(chan error, 1)
			go func() { served <- Server(server, Hello{}, 0, handlerFunc(echoHandler)) }()
			time.Sleep(24 * time.Hour) // of the bubble's own clock
			c, err := Client(context.Background(), client, Hello{})
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			if err := <-served; err != nil {
				t.Error(err)
			}
		})
	})
	t.Run("greeted in time", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			client, server := net.Pipe()
			served := make(chan error, 1)
			go func() { served <- Server(server, Hello{}, patience, handlerFunc(echoHandler)) }()
			c, err := Client(context.Background(), client, Hello{})
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(24 * time.Hour)
			select {
			case err := <-served:
				t.Errorf("a silent client's connection ended after its hello: %v, want it open", err)
			default:
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			<-served
		})
	})
}
