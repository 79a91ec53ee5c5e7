package egress

import "errors"

// ErrInvalid: a rule, a mode or a secret makes no sense.
var ErrInvalid = errors.New("invalid network settings")

// ErrClosed: the proxy was closed.
var ErrClosed = errors.New("network proxy is closed")
