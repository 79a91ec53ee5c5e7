package e2b

import "net/http"

const filesPath = "/files"

// watchers are the watches of directories that SDKs ask for events.
type watchers struct{}

func (s *Server) fileRoutes(*http.ServeMux) {}
