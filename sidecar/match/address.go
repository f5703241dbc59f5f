package match

import (
	"net/netip"
	"strings"
)

// sourceAddress returns the caller's address: the peer for 0 hops, else that many entries from the
// right end of X-Forwarded-For, since only what trusted proxies appended can be believed. An Envoy
// that appended the peer itself (use_remote_address) is seen by the last entry being the peer, which
// is passed over. Where the list is too short or the entry is no address: the peer.
func sourceAddress(peer netip.Addr, forwarded string, hops int) netip.Addr {
	peer = plainAddr(peer)
	if hops == 0 {
		return peer
	}
	entry, rest, more := cutLast(forwarded)
	if addr, ok := parseHop(entry); ok && more && addr == peer {
		entry, rest, more = cutLast(rest)
	}
	for range hops - 1 {
		if !more {
			return peer
		}
		entry, rest, more = cutLast(rest)
	}
	if addr, ok := parseHop(entry); ok {
		return addr
	}
	return peer
}

func cutLast(list string) (entry, before string, more bool) {
	i := strings.LastIndexByte(list, ',')
	if i < 0 {
		return list, "", false
	}
	return list[i+1:], list[:i], true
}

// parseHop reads an entry of X-Forwarded-For, with or without a port.
func parseHop(entry string) (netip.Addr, bool) {
	entry = strings.Trim(entry, " \t")
	if len(entry) == 0 || len(entry) > 64 {
		return netip.Addr{}, false
	}
	if entry[0] == '[' || strings.IndexByte(entry, '.') > 0 && strings.LastIndexByte(entry, ':') > strings.LastIndexByte(entry, '.') {
		return parseHopWithPort(entry)
	}
	addr, err := netip.ParseAddr(entry)
	return plainAddr(addr), err == nil
}

func parseHopWithPort(entry string) (netip.Addr, bool) {
	if bare, ok := strings.CutSuffix(entry, "]"); ok && entry[0] == '[' {
		addr, err := netip.ParseAddr(bare[1:])
		return plainAddr(addr), err == nil
	}
	ap, err := netip.ParseAddrPort(entry)
	return plainAddr(ap.Addr()), err == nil
}

// plainAddr makes IPv4 of IPv4-mapped IPv6 and drops a zone, so that one caller has one address.
func plainAddr(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }
