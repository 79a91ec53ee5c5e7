// Package layerstore keeps layers on this machine, which sandboxes mount or are sent:
// prepared caches and installed libraries. A layer is made once among all processes that
// share the store, is only ever seen whole, and stays while it is held.
//
// On disk a store is a directory with
//
//	layers/KEY/about.json  what the layer is
//	layers/KEY/files       its files
//
// and beside each KEY, while it is being made, KEY.lock and KEY.new. Where KEY is a file it
// says why a cache could not be made.
package layerstore
