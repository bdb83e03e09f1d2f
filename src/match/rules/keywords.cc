#include "match/rules/keywords.h"

#include <algorithm>
#include <array>

namespace sluice::match {
namespace {

constexpr auto none = Argument::none;
constexpr auto optional = Argument::optional;

constexpr std::string_view dce = "DCE/RPC is not parsed";
constexpr std::string_view sip = "SIP is not parsed";
constexpr std::string_view ssl = "TLS records are not parsed";
constexpr std::string_view modbus = "Modbus is not parsed";
constexpr std::string_view kerberos = "Kerberos is not parsed";
constexpr std::string_view file = "files are not extracted";
constexpr std::string_view transform = "buffers are not transformed";
constexpr std::string_view reaction = "it is an action that Sluice has not";
constexpr std::string_view between = "state is kept in flowbits of a flow only";

constexpr auto table = std::to_array<Keyword>({
    {"msg", read_msg},
    {"sid", read_sid},
    {"gid", read_gid},
    {"rev", read_rev},
    {"classtype", read_classtype},
    {"priority", read_priority},
    {"reference", read_reference},
    {"metadata", read_metadata},
    {"target", read_target},
    {"noalert", read_noalert, none},

    {"content", read_content},
    {"uricontent", read_uricontent},
    {"nocase", read_nocase, none},
    {"rawbytes", read_rawbytes, none},
    {"offset", read_offset},
    {"depth", read_depth},
    {"distance", read_distance},
    {"within", read_within},
    {"startswith", read_startswith, none},
    {"endswith", read_endswith, none},
    {"fast_pattern", read_fast_pattern, optional},
    {"pcre", read_pcre_option},

    {"byte_test", read_byte_test},
    {"byte_jump", read_byte_jump},
    {"byte_extract", read_byte_extract},
    {"byte_math", read_byte_math},
    {"isdataat", read_isdataat},
    {"base64_decode", read_base64_decode, optional},
    {"bsize", read_bsize},
    {"urilen", read_urilen},

    {"dsize", read_dsize},
    {"ttl", read_ttl},
    {"id", read_id},
    {"tos", read_tos},
    {"ip_proto", read_ip_proto},
    {"fragbits", read_fragbits},
    {"fragoffset", read_fragoffset},
    {"ipopts", read_ipopts},
    {"sameip", read_sameip, none},
    {"itype", read_itype},
    {"icode", read_icode},
    {"icmp_id", read_icmp_id},
    {"icmp_seq", read_icmp_seq},
    {"flags", read_flags},
    {"tcp.flags", read_flags},
    {"seq", read_seq},
    {"tcp.seq", read_seq},
    {"ack", read_ack},
    {"tcp.ack", read_ack},
    {"window", read_window},
    {"tcp.window", read_window},

    {"flow", read_flow},
    {"flowbits", read_flowbits},
    {"stream_size", read_stream_size},
    {"threshold", read_threshold},
    {"detection_filter", read_detection_filter},

    {.name = "asn1", .why = "ASN.1 is not decoded"},
    {.name = "cvs", .why = "CVS is not parsed"},
    {.name = "dce_iface", .why = dce},
    {.name = "dce_opnum", .why = dce},
    {.name = "dce_stub_data", .why = dce},
    {.name = "sip_method", .why = sip},
    {.name = "sip_stat_code", .why = sip},
    {.name = "sip_header", .why = sip},
    {.name = "sip_body", .why = sip},
    {.name = "ssl_state", .why = ssl},
    {.name = "ssl_version", .why = ssl},
    {.name = "ftpbounce", .why = "FTP commands are not parsed"},
    {.name = "ftpdata_command", .why = "FTP commands are not parsed"},
    {.name = "rpc", .why = "Sun RPC is not parsed"},
    {.name = "gtp_type", .why = "GTP is not parsed"},
    {.name = "gtp_info", .why = "GTP is not parsed"},
    {.name = "gtp_version", .why = "GTP is not parsed"},
    {.name = "modbus_func", .why = modbus},
    {.name = "modbus_unit", .why = modbus},
    {.name = "modbus_data", .why = modbus},
    {.name = "dnp3_func", .why = "DNP3 is not parsed"},
    {.name = "dnp3_obj", .why = "DNP3 is not parsed"},
    {.name = "dnp3_ind", .why = "DNP3 is not parsed"},
    {.name = "dnp3_data", .why = "DNP3 is not parsed"},
    {.name = "krb5_msg_type", .why = kerberos},
    {.name = "krb5_cname", .why = kerberos},
    {.name = "krb5_sname", .why = kerberos},
    {.name = "krb5_err_code", .why = kerberos},
    {.name = "dns_query", .why = "DNS is not parsed"},
    {.name = "app-layer-protocol", .why = "a rule asks for a protocol in its header only"},
    {.name = "app-layer-event", .why = "anomalies of protocols are not events"},
    {.name = "decode-event", .why = "malformed frames are drops by reason, not events"},
    {.name = "stream-event", .why = "anomalies of TCP are not events"},
    {.name = "engine-event", .why = "the engine's anomalies are not events"},
    {.name = "http_encode", .why = "kinds of encoding in HTTP are not distinguished"},
    {.name = "http_raw_cookie", .why = "cookies are there in one form only"},
    {.name = "http_request_header", .why = "headers are one buffer, not one for each"},
    {.name = "http_response_header", .why = "headers are one buffer, not one for each"},
    {.name = "filename", .why = file},
    {.name = "fileext", .why = file},
    {.name = "filemagic", .why = file},
    {.name = "filestore", .why = file},
    {.name = "filemd5", .why = file},
    {.name = "filesha1", .why = file},
    {.name = "filesha256", .why = file},
    {.name = "filesize", .why = file},
    {.name = "file_type", .why = file},
    {.name = "file_group", .why = file},
    {.name = "dotprefix", .why = transform},
    {.name = "to_lowercase", .why = transform},
    {.name = "to_uppercase", .why = transform},
    {.name = "to_md5", .why = transform},
    {.name = "to_sha1", .why = transform},
    {.name = "to_sha256", .why = transform},
    {.name = "url_decode", .why = transform},
    {.name = "xor", .why = transform},
    {.name = "compress_whitespace", .why = transform},
    {.name = "strip_whitespace", .why = transform},
    {.name = "header_lowercase", .why = transform},
    {.name = "strip_pseudo_headers", .why = transform},
    {.name = "pcrexform", .why = transform},
    {.name = "absent", .why = "a buffer that is not there is no match"},
    {.name = "xbits", .why = between},
    {.name = "hostbits", .why = between},
    {.name = "flowint", .why = between},
    {.name = "flowvar", .why = between},
    {.name = "pktvar", .why = between},
    {.name = "dataset", .why = "sets of data are not kept"},
    {.name = "datarep", .why = "sets of data are not kept"},
    {.name = "iprep", .why = "reputations of addresses are not kept"},
    {.name = "geoip", .why = "countries of addresses are not known"},
    {.name = "lua", .why = "scripts are not run"},
    {.name = "luajit", .why = "scripts are not run"},
    {.name = "prefilter", .why = "the pattern for the matcher is a content (fast_pattern)"},
    {.name = "requires", .why = "Sluice has not Suricata's versions and features"},
    {.name = "bypass", .why = "a flow is not taken out of inspection by a rule"},
    {.name = "config", .why = "rules do not configure the engine"},
    {.name = "tag", .why = "packets after an alert are not logged"},
    {.name = "logto", .why = "alerts go to one log"},
    {.name = "session", .why = "what users type is not logged"},
    {.name = "replace", .why = "payloads are not changed"},
    {.name = "resp", .why = reaction},
    {.name = "react", .why = reaction},
    {.name = "activates", .why = reaction},
    {.name = "activated_by", .why = reaction},
    {.name = "count", .why = reaction},
    {.name = "sd_pattern", .why = "sensitive data is not recognised"},
    {.name = "protected_content", .why = "contents that are hashes are not matched"},
    {.name = "tcp.mss", .why = "TCP options are not checked"},
    {.name = "tcp.wscale", .why = "TCP options are not checked"},
});

struct Family {
  std::string_view prefix;
  std::string_view why;
};
constexpr auto families = std::to_array<Family>({
    {"tls.", ssl},
    {"tls_", ssl},
    {"ja3", ssl},
    {"ja4", ssl},
    {"dns.", "DNS is not parsed"},
    {"mdns.", "DNS is not parsed"},
    {"ssh.", "SSH is not parsed"},
    {"ssh_", "SSH is not parsed"},
    {"smb.", "SMB is not parsed"},
    {"dcerpc.", dce},
    {"sip.", sip},
    {"krb5.", kerberos},
    {"snmp.", "SNMP is not parsed"},
    {"rfb.", "RFB is not parsed"},
    {"mqtt.", "MQTT is not parsed"},
    {"quic.", "QUIC is not parsed"},
    {"http2.", "HTTP/2 is not parsed"},
    {"ike.", "IKE is not parsed"},
    {"smtp.", "SMTP is not parsed"},
    {"email.", "SMTP is not parsed"},
    {"ftp.", "FTP commands are not parsed"},
    {"nfs", "NFS is not parsed"},
    {"enip", "EtherNet/IP is not parsed"},
    {"cip_", "EtherNet/IP is not parsed"},
    {"flow.", "sizes and ages of flows are not checked"},
    {"file.", file},
    {"websocket.", "WebSocket is not parsed"},
    {"ldap.", "LDAP is not parsed"},
});

}  // namespace

std::span<const Keyword> keywords() {
  return table;
}

const Keyword* find_keyword(std::string_view name) {
  const auto* const at = std::find_if(table.begin(), table.end(), [&](const Keyword& k) { return k.name == name; });
  return at == table.end() ? nullptr : at;
}

std::string_view family_refusal(std::string_view name) {
  const auto* const at =
      std::find_if(families.begin(), families.end(), [&](const Family& f) { return name.starts_with(f.prefix); });
  return at == families.end() ? std::string_view() : at->why;
}

}  // namespace sluice::match
