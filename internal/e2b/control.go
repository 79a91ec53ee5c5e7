package e2b

import "net/http"

func (s *Server) controlRoutes() http.Handler { return http.NotFoundHandler() }
