// Which URLs a corpus of web pages does without: the rules of Megatron's openwebtext tools.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace bloomery {

enum class UrlFault { none, domain, extension, too_short, malformed };

// The first fault of a URL, in the order of the enum: the site is in the list of those without
// prose, the path ends like a file that is no page, 8 characters or fewer, not a URL of the web.
// The original's list fuses .7z and .ai to .7z.ai; here both are refused.
UrlFault openwebtext_fault(std::string_view url);

// "google" of https://docs.google.co.uk/x: the label before the public suffix. Suffixes are the
// last label, and with it the one before where that is a usual second level of a country (co, com,
// ac, ...); the full list of public suffixes is not used.
std::string registered_name(std::string_view url);

// The host of a URL, lower case, without port and user.
std::string host_of(std::string_view url);
// Whether a host is one of the sorted domains or lies below one.
bool is_within(std::string_view host, const std::vector<std::string>& domains);

}  // namespace bloomery
