// URLs that stay one word.
#pragma once

#include "text/filter/word_text.h"

namespace bloomery {

// As spaCy recognises them: [scheme://][user@]host.domain[:port][/path], or an IPv4 address.
bool is_url(const WordText& word);

}  // namespace bloomery
