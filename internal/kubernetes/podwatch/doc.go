// Package podwatch knows what becomes of the pods of one owner: when they run, why they do
// not start, and how they ended.
//
// All pods of a [Watcher] share one list and watch, which lives as long as one of them is
// followed. client-go's reflector takes it up again where it was after an API server's
// restart, and lists anew where that is not possible. What shows only in events, such as
// a runtime that a node does not have, is watched only while a start takes long. An event
// reports that a container has started before the pod's status does, after [Pod.Hear].
package podwatch
