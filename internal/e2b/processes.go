package e2b

import "net/http"

// processes are those that SDKs have started in a sandbox.
type processes struct{}

func (s *Server) processRoutes(*http.ServeMux) {}
