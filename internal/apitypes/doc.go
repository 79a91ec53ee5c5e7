// Package apitypes has the types of the HTTP API's requests and answers, for the server and its clients. Their tags say how they are
// written in JSON, and describe them in the API's document.
package apitypes
