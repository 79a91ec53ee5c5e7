package e2b

import "net/http"

// contexts are the kernels that SDKs run code in.
type contexts struct{}

func (s *Server) interpreterRoutes() http.Handler { return http.NotFoundHandler() }
