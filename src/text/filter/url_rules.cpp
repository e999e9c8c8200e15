#include "text/filter/url_rules.h"

#include <algorithm>
#include <array>

namespace bloomery {
namespace {

constexpr std::string_view kDomains =
    " 500px aapks akamaihd amazon apple artifactfire artstation awwni bandcamp battleforthenet "
    "coinscalendar dailymotion deviantart discord discordapp dlapkandroid dropbox e621 ebay "
    "edealinfo erome eroshare explosm facebook fbcdn flickr furaffinity futhead gatopardo gfycat "
    "gifsound gifsoup giphy github google gunprime gyazo hotdealstar imagefap imageshack imgflip "
    "imgur instagram karmadecay kryptocal kym-cdn liveleak livememe lmgtfy magaimg memegenerator "
    "minorplanetcenter minus mobafire morejpeg nocookie pcpartpicker photobucket pinimg pinterest "
    "pixiv pornhub prntscr puu qkme quickmeme radd redd reddit reddit-stream redditlog redditmedia "
    "reddituploads redtube reupp reverb roanoke rollingstone sli soundcloud soundgasm spankbang "
    "spotify strawpoll streamable timeanddate tinypic touhouradio tumblr twimg twitch twitter vid "
    "vimeo vine vkaao vocaroo voyagefusion walmart wciu wikimedia wikipedia xhamster xkcd xvideos "
    "youtu youtube youtubedoubler ytimg zillexplorer ";
constexpr std::string_view kExtensions =
    " 3gp 7z ai aif apk app avi bin bmp bz2 css csv dat deb dmg doc docx exe gif gifv gz iso jar "
    "jpeg jpg js log mid midi mkv mov mp3 mp4 mpeg mpg ogg ogv otf pdf pkg png pps ppt pptx psd py "
    "qt ram rar sql svg swf tar tgz tiff ttf txt wav webm wma wmv xls xlsx xml xz zip ";
constexpr std::string_view kSecondLevels =
    " ac co com edu gob gov go gv ltd me mil ne net nom or org plc sch ";

bool in_list(std::string_view word, std::string_view list) {
  return !word.empty() && list.find(" " + std::string(word) + " ") != list.npos;
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  });
  return result;
}

bool is_alphanumeric(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::vector<std::string_view> labels_of(std::string_view host) {
  std::vector<std::string_view> labels;
  for (std::size_t begin = 0;;) {
    const std::size_t end = std::min(host.find('.', begin), host.size());
    labels.push_back(host.substr(begin, end - begin));
    if (end == host.size()) return labels;
    begin = end + 1;
  }
}

bool is_address(const std::vector<std::string_view>& labels) {
  return labels.size() == 4 && std::ranges::all_of(labels, [](std::string_view label) {
           return !label.empty() && label.size() <= 3 && std::ranges::all_of(label, is_digit);
         });
}

bool is_label(std::string_view label) {
  return !label.empty() && label.size() <= 63 && label.front() != '-' && label.back() != '-' &&
         std::ranges::all_of(label, [](char c) { return is_alphanumeric(c) || c == '-'; });
}

bool is_host_of_web(std::string_view host) {
  std::vector<std::string_view> labels = labels_of(host);
  if (is_address(labels)) return true;
  if (labels.size() > 1 && labels.back().empty()) labels.pop_back();  // a final dot
  if (labels.size() < 2 || labels.back().size() < 2) return false;
  const std::string_view top = labels.back();
  labels.pop_back();
  return std::ranges::all_of(labels, is_label) &&
         std::ranges::all_of(top, [](char c) { return is_alphanumeric(c) || c == '-'; });
}

bool is_of_web(std::string_view url) {
  const std::string text = lower(url);
  std::string_view rest = text;
  if (rest.starts_with("http://")) {
    rest.remove_prefix(7);
  } else if (rest.starts_with("https://")) {
    rest.remove_prefix(8);
  } else {
    return false;
  }
  const std::size_t end = std::min(rest.find_first_of("/?:"), rest.size());
  if (!is_host_of_web(rest.substr(0, end))) return false;
  rest.remove_prefix(end);
  if (rest.starts_with(':')) {
    const std::size_t digits = std::min(rest.find_first_not_of("0123456789", 1), rest.size());
    if (digits == 1) return false;
    rest.remove_prefix(digits);
  }
  const bool path = rest.empty() || rest[0] == '/' || (rest[0] == '?' && rest.size() > 1);
  return path && rest.find_first_of(" \t\r\n\f\v") == rest.npos;
}

bool has_bad_extension(std::string_view url) {
  const std::string path = lower(url.substr(0, url.find('?')));
  const std::size_t dot = path.rfind('.');
  return dot != path.npos && in_list(std::string_view(path).substr(dot + 1), kExtensions);
}

}  // namespace

std::string host_of(std::string_view url) {
  const std::size_t scheme = url.find("//");
  if (scheme != url.npos) url.remove_prefix(scheme + 2);
  url = url.substr(0, url.find_first_of("/?#"));
  const std::size_t user = url.rfind('@');
  if (user != url.npos) url.remove_prefix(user + 1);
  return lower(url.substr(0, url.find(':')));
}

std::string registered_name(std::string_view url) {
  const std::string host = host_of(url);
  std::vector<std::string_view> labels = labels_of(host);
  if (is_address(labels)) return host;
  if (labels.size() > 1 && labels.back().empty()) labels.pop_back();
  if (labels.size() < 2) return host;
  const bool country = labels.back().size() == 2;
  std::size_t name = labels.size() - 2;
  if (country && name > 0 && in_list(labels[name], kSecondLevels)) --name;
  return std::string(labels[name]);
}

bool is_within(std::string_view host, const std::vector<std::string>& domains) {
  while (true) {
    if (std::ranges::binary_search(domains, host)) return true;
    const std::size_t dot = host.find('.');
    if (dot == host.npos) return false;
    host.remove_prefix(dot + 1);
  }
}

UrlFault openwebtext_fault(std::string_view url) {
  if (in_list(registered_name(url), kDomains)) return UrlFault::domain;
  if (has_bad_extension(url)) return UrlFault::extension;
  if (url.size() <= 8) return UrlFault::too_short;
  return is_of_web(url) ? UrlFault::none : UrlFault::malformed;
}

}  // namespace bloomery
