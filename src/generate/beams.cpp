#include "generate/generator.h"
#include "generate/prompt_beams.h"

namespace bloomery {

std::vector<Generation> Generator::beams(const Request& request, std::int64_t count) {
  check(!request.tokens.empty(), "generation: prompt ", request.prompt, " has no token");
  check(count >= 1 && count <= options_.num_beams, count, " results of ", options_.num_beams,
        " beams; there can be from 1 to as many as beams");
  const std::vector<TokenId> begin = beginning(request);
  const std::span<const TokenId> before = continued(request);
  const std::int64_t space = room(std::ssize(request.tokens), request.prompt);
  PromptBeams beams(tokenizer_, options_, begin, {before.begin(), before.end()}, space);
  Decoder decoder = make_decoder(options_.num_beams, std::ssize(begin) + space - 1);
  feed(decoder, {request.tokens});
  while (true) {
    decoder.logits(0);  // waits once, before the threads ask
    const std::vector<std::int64_t> parents =
        beams.step(stream_.device().pool(), [&](std::int64_t i) { return decoder.logits(i); });
    if (beams.over()) {
      break;
    }
    decoder.select(parents);
    std::vector<std::vector<TokenId>> tokens;
    for (const Beam& beam : beams.running()) {
      tokens.push_back({beam.ids.back()});
    }
    decoder.feed(tokens);
  }
  std::vector<Generation> results = beams.results(count);
  for (Generation& result : results) {
    result.prompt = request.prompt;
  }
  return results;
}

}  // namespace bloomery
