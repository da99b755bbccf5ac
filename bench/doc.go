// Package bench drives real node processes: it starts and faults them, loads
// them over sessions, and checks from outside what the guarantees promise.
//
// All traffic stays on loopback, every run is bounded in time and number, and
// only processes that the package started itself are ever signalled.
package bench
