#include "core/text/secrets.hpp"

#include <gtest/gtest.h>
#include <random>

namespace sluice {
namespace {

TEST(SecretsTest, NamesThatSoundSecret) {
  for (const char* name : {"Authorization", "proxy-authorization", "Set-Cookie", "api_key",
                           "apiKey", "--api-key", "accessToken", "client_secret", "PASSWORD",
                           "DPoP", "X-Auth", "private_key_jwt", "credentials"}) {
    EXPECT_TRUE(sounds_secret(name)) << name;
  }
  for (const char* name : {"", "author", "name", "progressToken", "maxTokens", "method", "uri",
                           "Content-Type", "keywords"}) {
    EXPECT_FALSE(sounds_secret(name)) << name;
  }
}

TEST(SecretsTest, UrlsLoseWhatMayBeSecret) {
  EXPECT_EQ(masked_url("https://me:pw@host/a?x=1&key=2#access_token=3"),
            "https://***@host/a?x=***&key=***");
  EXPECT_EQ(masked_url("https://host/a@b"), "https://host/a@b");
  EXPECT_EQ(masked_url("/path?flag&code=abc"), "/path?flag&code=***");
  EXPECT_EQ(masked_url("/path?SECRET123&abcdefghijklmnopq&x"), "/path?***&***&x");
  EXPECT_EQ(masked_url("https://host/#access_token=abc"), "https://host/");
  EXPECT_EQ(masked_url("/path#access_token=abc"), "/path");
  EXPECT_EQ(masked_url("http+unix:/run/x#/mcp?key=1"), "http+unix:/run/x#/mcp?key=***");
  EXPECT_EQ(masked_url(""), "");
}

std::string without_secrets(std::string text, const std::vector<std::string>& secrets) {
  return SecretMask(secrets).masked(std::move(text));
}

TEST(SecretsTest, TextsLoseWhatIsSecretInAUrl) {
  const auto secrets =
      secrets_in_url("https://me:hunter2@h:1/p/key-in-path?api_key=SECRET1&n=7&BARE22#fragment");
  EXPECT_EQ(
      without_secrets("POST /p?api_key=SECRET1&n=7&BARE22 by hunter2: SECRET1SECRET1", secrets),
      "POST /p?api_key=***&n=7&*** by ***: ***");
  EXPECT_TRUE(secrets_in_url("https://h/p").empty());
  EXPECT_TRUE(secrets_in_url("").empty());
  EXPECT_TRUE(secrets_in_url("?").empty());
  EXPECT_EQ(secrets_in_url("/p?=abcd1234").size(), 1U);
}

TEST(SecretsTest, WordsAndShortNumbersOfAUrlAreNotSecret) {
  EXPECT_TRUE(secrets_in_url("https://h/p?transport=http&verbose=true&n=1234").empty());
  EXPECT_EQ(secrets_in_url("https://h/p?key=john&n=12345678").size(), 2U);
}

TEST(SecretsTest, ASecretThatBeginsAnotherLeavesNothingOfIt) {
  const auto secrets = secrets_in_url("https://h/p?token=john&key=john-s3cret");
  EXPECT_EQ(without_secrets("bad key john-s3cret of john.", secrets), "bad key *** of ***.");
  EXPECT_EQ(without_secrets("john-s3cret", secrets), "***");
}

TEST(SecretsTest, ServersRepeatSecretsDecoded) {
  const auto secrets = secrets_in_url("https://me:p%40ss@h/p?key=a%2Fb%3Dc+hello");
  EXPECT_EQ(without_secrets("a%2Fb%3Dc+hello, a/b=c+hello, a/b=c hello, p@ss", secrets),
            "***, ***, ***, ***");
}

TEST(SecretsTest, SecretsThatOverlapAreMaskedAsOne) {
  EXPECT_EQ(without_secrets("xabcdefgx", {"abcde", "defg"}), "x***x");
  EXPECT_EQ(without_secrets("-abababab-aba", {"abab"}), "-***-aba");
  EXPECT_EQ(without_secrets("aaab aab aaaab", {"aaab"}), "*** aab a***");
}

TEST(SecretsTest, ALongTextOfSecretsTakesTimeForItsLength) {
  std::string text;
  for (int i = 0; i < 4'000'000; ++i) text.append("abcd");
  EXPECT_EQ(without_secrets(text, {"abcd"}), "***");
  for (std::size_t i = 3; i < text.size(); i += 8) text[i] = '.';
  EXPECT_EQ(without_secrets(text, {"abcd"}).size(), text.size() / 8 * 7);
  const std::string tail = std::string(10'000, 'a') + "b";
  EXPECT_EQ(without_secrets(std::string(10'000'000, 'a'), {tail}).size(), 10'000'000U);
}

TEST(SecretsTest, ManySecretsTakeNoMoreTimeForALongText) {
  std::vector<std::string> secrets;
  for (int c = 1; c < 256; ++c) {
    for (const char* const end : {"x1", "y2"}) {
      secrets.push_back("k" + std::string(1, static_cast<char>(c)) + end);
      secrets.push_back(std::string(1, static_cast<char>(c)) + "k" + end);
    }
  }
  const std::string text(20'000'000, 'k');
  EXPECT_EQ(without_secrets(text, secrets).size(), text.size());
  EXPECT_EQ(without_secrets("-zkx1-kzy2-kkx1-", secrets), "-***-***-***-");
}

TEST(SecretsTest, SecretsAreFoundAsLibrariesWriteThemInJson) {
  const auto masked = [](std::string text) {
    return without_secrets(std::move(text), as_in_json({"a+b/c&d=<e>"}));
  };
  EXPECT_EQ(masked("a+b/c&d=<e>"), "***");
  EXPECT_EQ(masked("a+b\\/c&d=<e>"), "***");
  EXPECT_EQ(masked(R"(a\u002Bb/c\u0026d=\u003Ce\u003E)"), "***") << ".NET";
  EXPECT_EQ(masked(R"(a+b/c\u0026d=\u003ce\u003e)"), "***") << "Go";
  EXPECT_EQ(masked(R"(a+b/c\u0026d\u003d\u003ce\u003e)"), "***") << "Gson";
  const auto masked_text = [](std::string text) {
    return without_secrets(std::move(text), as_in_json({"p\u00e4ss/w\U0001F600rd"}));
  };
  EXPECT_EQ(masked_text("p\u00e4ss/w\U0001F600rd"), "***");
  EXPECT_EQ(masked_text(R"(p\u00e4ss/w\ud83d\ude00rd)"), "***") << "Python";
  EXPECT_EQ(masked_text(R"(p\u00e4ss\/w\ud83d\ude00rd)"), "***") << "PHP";
  EXPECT_EQ(masked_text(R"(p\u00E4ss/w\uD83D\uDE00rd)"), "***") << ".NET and Jackson";
  EXPECT_EQ(without_secrets(R"(back\\slash\u002Bword)", as_in_json({"back\\slash+word"})), "***");
  EXPECT_EQ(without_secrets(R"(p\u00E4+)", as_in_json({"p\u00e4+"})), "***") << "Jackson";
}

TEST(SecretsTest, AWordLosesItsPasswordAlsoWithoutAScheme) {
  EXPECT_EQ(masked_word("me:pw@host:1/a?key=2"), "***@host:1/a?key=***");
  EXPECT_EQ(masked_word("me:p@w@host"), "***@host");
  EXPECT_EQ(masked_word("https://me:pw@host/a"), "https://***@host/a");
  // Those are no URLs.
  for (const char* const word :
       {"http://me:p/w@host/a", "http://me:p?w@host/a", "http:/me:pw@host/a", "http//me:pw@host/a",
        "http://me:p#w@host/a"}) {
    EXPECT_EQ(masked_word(word), "***@host/a") << word;
  }
  EXPECT_EQ(masked_word("http://host:80/a@b"), "http://host:80/a@b");
  for (const char* const word :
       {"", "docs", "@session", "server@1.2.3", "host:1/a@b", "http+unix:x@y", "unix:/run/a:b@c"}) {
    EXPECT_EQ(masked_word(word), word);
  }
}

TEST(SecretsTest, TextsThatLookLikeOne) {
  for (const char* text : {"Bearer abc", "basic abc", "sk-abc", "ghp_abc", "eyJhbGciOi"}) {
    EXPECT_TRUE(looks_like_secret(text)) << text;
  }
  for (const char* text : {"", "abc", "basically", "ask-me"}) {
    EXPECT_FALSE(looks_like_secret(text)) << text;
  }
}

TEST(SecretsTest, AHeaderLosesAllOfItsSecrets) {
  EXPECT_EQ(without_secrets("I got Bearer tok3n-abc and tok3n-abc",
                            secrets_in_header("Authorization", "Bearer tok3n-abc")),
            "I got *** and ***");
  EXPECT_EQ(without_secrets("sid is verysecretsid",
                            secrets_in_header("Cookie", "sid=verysecretsid; theme=dark")),
            "sid is ***");
  EXPECT_EQ(without_secrets("key abc def ghijkl", secrets_in_header("X-Api-Key", "abc def ghijkl")),
            "key ***");
  EXPECT_EQ(
      without_secrets("sid is s3cret7", secrets_in_header("Cookie", "sid=s3cret7; theme=dark")),
      "sid is ***");
  const auto basic = secrets_in_header("Authorization", "Basic am9lOmh1bnRlcjJodW50ZXI=");
  EXPECT_EQ(without_secrets("joe:hunter2hunter, hunter2hunter, am9lOmh1bnRlcjJodW50ZXI=", basic),
            "***, ***, ***");
  EXPECT_EQ(secrets_in_header("X-Tenant", "acme").size(), 0U);
  EXPECT_EQ(secrets_in_header("X-Custom", "hunter2hunter").size(), 1U);
}

TEST(SecretsTest, WordsWithinWordsAndAfterAMissAreFound) {
  const std::vector<std::string> words = {"abcde", "bcd", "cdef", "dog", "a"};
  EXPECT_EQ(without_secrets("xbcdx", words), "x***x");
  EXPECT_EQ(without_secrets("xabcdx", words), "x***x") << "a and bcd touch";
  EXPECT_EQ(without_secrets("xabcdefx", words), "x***x") << "abcde and cdef overlap";
  EXPECT_EQ(without_secrets("bcdog", words), "***") << "bcd and dog overlap";
  EXPECT_EQ(without_secrets("bc cde do", words), "bc cde do");
}

/// Finds words in the simplest way.
std::string masked_simply(const std::string& text, const std::vector<std::string>& words) {
  std::string marks(text.size(), ' ');
  for (const std::string& word : words) {
    for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
      marks.replace(at, word.size(), word.size(), '*');
    }
  }
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (marks[i] == ' ') {
      out.push_back(text[i]);
    } else if (i == 0 || marks[i - 1] == ' ') {
      out.append(kMask);
    }
  }
  return out;
}

TEST(SecretsTest, AMaskFindsWhatASimpleSearchFinds) {
  std::mt19937 random(7);
  const auto word = [&random](std::size_t most) {
    std::string out(1 + random() % most, 'a');
    for (char& c : out) c = static_cast<char>('a' + random() % 3);
    return out;
  };
  for (int i = 0; i < 5000; ++i) {
    std::vector<std::string> words;
    for (std::size_t count = random() % 5; words.size() < count;) words.push_back(word(6));
    const std::string text = word(40);
    EXPECT_EQ(without_secrets(text, words), masked_simply(text, words));
  }
}

TEST(SecretsTest, TheUserOfBasicMayComeWithoutPadding) {
  const auto secrets = secrets_in_header("Authorization", "Basic am9lOmh1bnRlcjJodW50ZXI");
  EXPECT_EQ(without_secrets("joe:hunter2hunter, hunter2hunter", secrets), "***, ***");
}

TEST(SecretsTest, OnlyTheLastSecretsThatBecomeKnownAreRemembered) {
  KnownSecrets secrets({"first"});
  const auto masked = [&secrets](std::string text) { return secrets.mask()->masked(text); };
  for (std::size_t i = 0; i <= KnownSecrets::kMaxAdded; ++i) {
    secrets.add({"token-" + std::to_string(i) + ";"});
  }
  EXPECT_EQ(masked("first token-0; token-1; token-8;"), "*** token-0; *** ***");
  const std::string large(KnownSecrets::kMaxAddedBytes, 'x');
  secrets.add({large});
  EXPECT_EQ(masked("token-8; " + large), "token-8; ***");
  secrets.add({large + "y"});
  EXPECT_EQ(masked(large + "y"), "***");
  EXPECT_EQ(masked(large), large);
}

}  // namespace
}  // namespace sluice
