// Package server tests `llmsandbox serve` as its users have it: started, killed and started again, and by Schemathesis, which makes
// requests out of the OpenAPI document.
package server
