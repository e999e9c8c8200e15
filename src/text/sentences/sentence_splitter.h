// Cuts a text into sentences by rules that need no language, with short lists for the exceptions.
//
// A sentence ends after a stop (. ! ? and the full stops of other scripts) with the closing quotes
// and brackets that follow it, when white space or the end of the text comes next. The stops of
// Chinese and Japanese need no white space; a stop directly before an opening bracket or quote, a
// star or an @ ends the sentence before that. A closing mark that stands alone after the stop
// belongs to the sentence too. New lines are white space like any other.
//
// A full stop does not end a sentence
//  - before a word in small letters, or before , ; : . ! ? on their own;
//  - after an initial ("J. Smith", but not before a quote), a dotted abbreviation ("p.m.", "U.S."),
//  a listed abbreviation
//    that comes before names and numbers ("Mr.", "Inc.", "Sept.") or as part of an ellipsis, unless
//    the next word is one that, written with a capital, begins a sentence ("The", "However"); those
//    words are listed.
// "!" and "?" always end one; a number with a full stop does, before anything but small letters.
//
// Where NLTK's punkt (English) differs: it ends sentences before small letters, and knows dotted
// abbreviations only from a list.
#pragma once

#include <string_view>
#include <vector>

namespace bloomery {

// Appends the sentences of a valid UTF-8 text, in order. White space between sentences belongs to
// none, or with `keep_newlines` to the sentence before it, as Megatron does; white space before the
// first one belongs to it, and what follows the last is left out. Nothing is appended for a text of
// white space alone.
void split_sentences(std::string_view text, bool keep_newlines,
                     std::vector<std::string_view>& sentences);

}  // namespace bloomery
