// Package sidecar is the program weir-sidecar: a check server beside one Envoy that answers from local
// memory, an agent that reports usage and hears decisions and policies, and an admin server.
//
// New checks the configuration; Run listens, works until its context ends, and then stops in order: no
// more checks, the last reports acknowledged, the pod out of the status topic, all within Config.Grace.
package sidecar
