#include "corpus/corpus_name.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/temporary_folder.h"
#include "corpus/indexed_corpus.h"

namespace bloomery {
namespace {

class CorpusName : public ::testing::Test {
 protected:
  CorpusName() {
    for (const char* name : {"my_text_document.bin", "my_text_document.idx", "other.idx",
                             "wiki.bin", "wiki.idx", "text.txt", "my.txt"}) {
      folder_.file(name, "");
    }
  }
  std::string why(const std::string& name) const { return why_no_corpus(at(name)); }
  std::string at(const std::string& name) const { return folder_.path() / name; }

  TemporaryFolder folder_;
};

TEST_F(CorpusName, ACorpusIsThere) {
  EXPECT_EQ(why("my_text_document"), "");
  EXPECT_EQ(why("wiki"), "");
}

TEST_F(CorpusName, WhatIsMeant) {
  const std::string meant = "; did you mean " + at("my_text_document") + "?";
  for (const char* name : {"my", "my.txt", "my.jsonl.gz", "my_text_document.bin",
                           "my_text_document.idx", "my_text_documnet"}) {
    EXPECT_NE(why(name).find(meant), std::string::npos) << why(name);
  }
  EXPECT_NE(why("").find(at("my_text_document") + " or " + at("wiki") + "?"), std::string::npos)
      << why("");
}

TEST_F(CorpusName, HalfAPairATextAndNothing) {
  EXPECT_NE(why("other").find(at("other.bin") + ": No such file"), std::string::npos)
      << why("other");
  EXPECT_NE(why("text.txt")
                .find("preprocess --input " + at("text.txt") + " --output-prefix " + at("text")),
            std::string::npos)
      << why("text.txt");
  EXPECT_NE(why("nothing-like-it").find("bloomery preprocess"), std::string::npos);
  EXPECT_NE(why("no/folder").find("there is no corpus"), std::string::npos);
  try {
    const IndexedCorpus corpus(at("my"));
    FAIL() << "opened";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace bloomery
