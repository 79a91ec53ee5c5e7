// Package layerstore keeps prepared folders on this machine, which sandboxes mount or are
// sent: caches that were warmed once, and installed libraries. A folder is made once among
// all processes that share the store, is only ever seen whole, and stays while somebody
// holds it.
//
// On disk a store is a folder with
//
//	layers/KEY                a prepared folder, or a file that says why there is none
//	libraries/KEY/about.json  what a layer of libraries is
//	libraries/KEY/files       its files
//
// and beside each KEY, while it is being made, KEY.lock and KEY.new.
package layerstore
