// Wikipedia's markup to plain text, by the rules of WikiExtractor without templates.
#pragma once

#include <string>
#include <string_view>

namespace bloomery {

// Lines of prose, one after another. Templates, tables, files, references, galleries, lists and
// comments are dropped; links leave their labels, italics become quoted, a heading ends in a full
// stop and stays only if text follows before the next of its level; formulas and code become
// formula_1 and codice_1.
// The markup must be UTF-8.
std::string plain_wiki_text(std::string_view markup);

// Its parts.
// Removes what stands between `open` and `close`, nested ones too; what is never closed goes on to
// the end of its line.
std::string without_nested(std::string_view text, std::string_view open, std::string_view close);
std::string replace_links(std::string_view text);

}  // namespace bloomery
