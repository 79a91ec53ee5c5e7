// Package podexec opens byte streams into the containers of pods and runs programs there.
//
// A stream goes over one WebSocket (the v5.channel.k8s.io protocol) to the API server, or
// over SPDY where the server or something on the way to it has no WebSockets. client-go's
// remotecommand is not used: it copies between readers and writers until all is over, so
// that its caller learns neither when the stream is open nor can close it at once, and its
// keep-alive takes a minute to find a dead connection, or, over SPDY, never finds one.
//
// What the other side sends is not trusted: it is read only as fast as the caller reads,
// and what is kept of it is bounded.
package podexec
