package http2

import (
	"encoding/binary"
)

const frameHeader = 9

// appendFrameHeader appends the header of a frame with a payload of n bytes.
func appendFrameHeader(dst []byte, n int, t uint8, flags uint8, id uint32) []byte {
	dst = append(dst, byte(n>>16), byte(n>>8), byte(n), t, flags)
	return binary.BigEndian.AppendUint32(dst, id)
}

func appendReset(dst []byte, id uint32, why code) []byte {
	dst = appendFrameHeader(dst, 4, frameReset, 0, id)
	return binary.BigEndian.AppendUint32(dst, uint32(why))
}

func appendUpdate(dst []byte, id, more uint32) []byte {
	dst = appendFrameHeader(dst, 4, frameUpdate, 0, id)
	return binary.BigEndian.AppendUint32(dst, more)
}

func appendGoAway(dst []byte, last uint32, why code) []byte {
	dst = appendFrameHeader(dst, 8, frameGoAway, 0, 0)
	dst = binary.BigEndian.AppendUint32(dst, last)
	return binary.BigEndian.AppendUint32(dst, uint32(why))
}

func appendSetting(dst []byte, id uint16, v uint32) []byte {
	dst = binary.BigEndian.AppendUint16(dst, uint16(id))
	return binary.BigEndian.AppendUint32(dst, v)
}

// The fields of answers are coded by the static table alone (RFC 7541, appendix A).
// So no state is kept for a client, nothing depends on the order in which streams are
// written, and no value of one tenant is left in a table for another.

// appendInt appends an integer behind the bits of a first byte, of which it may use
// those in mask (RFC 7541, section 5.1).
func appendInt(dst []byte, first, mask byte, v int) []byte {
	if v < int(mask) {
		return append(dst, first|byte(v))
	}
	dst = append(dst, first|mask)
	for v -= int(mask); v >= 0x80; v >>= 7 {
		dst = append(dst, byte(v)|0x80)
	}
	return append(dst, byte(v))
}

// appendStatus appends the field :status.
func appendStatus(dst []byte, digits []byte) []byte {
	for i, s := range [...]string{"200", "204", "206", "304", "400", "404", "500"} {
		if string(digits) == s {
			return append(dst, 0x88+byte(i))
		}
	}
	dst = append(dst, 8, byte(len(digits)))
	return append(dst, digits...)
}

// appendField appends a field; its name is made lower case.
func appendField(dst, name, value []byte) []byte {
	var low [32]byte
	at := 0
	if len(name) <= len(low) {
		for i, c := range name {
			low[i] = lower(c)
		}
		at = nameIndex(low[:len(name)])
	}
	if at != 0 {
		dst = appendInt(dst, 0, 0x0f, at)
	} else {
		dst = append(dst, 0)
		dst = appendInt(dst, 0, 0x7f, len(name))
		for _, c := range name {
			dst = append(dst, lower(c))
		}
	}
	dst = appendInt(dst, 0, 0x7f, len(value))
	return append(dst, value...)
}

func lower(c byte) byte {
	if c-'A' < 26 {
		c |= 0x20
	}
	return c
}

// nameIndex returns where the static table has a name that answers use, or 0.
func nameIndex(name []byte) int {
	switch string(name) {
	case "accept-ranges":
		return 18
	case "access-control-allow-origin":
		return 20
	case "age":
		return 21
	case "allow":
		return 22
	case "cache-control":
		return 24
	case "content-disposition":
		return 25
	case "content-encoding":
		return 26
	case "content-language":
		return 27
	case "content-length":
		return 28
	case "content-location":
		return 29
	case "content-range":
		return 30
	case "content-type":
		return 31
	case "date":
		return 33
	case "etag":
		return 34
	case "expires":
		return 36
	case "last-modified":
		return 44
	case "link":
		return 45
	case "location":
		return 46
	case "proxy-authenticate":
		return 48
	case "refresh":
		return 52
	case "retry-after":
		return 53
	case "server":
		return 54
	case "set-cookie":
		return 55
	case "strict-transport-security":
		return 56
	case "vary":
		return 59
	case "via":
		return 60
	case "www-authenticate":
		return 61
	}
	return 0
}
