#include "core/sharing/ranking.hpp"

#include <gtest/gtest.h>

namespace sluice {
namespace {

struct Client {
  RankKey rank;
};

TEST(Ranking, NamesWhoHasMostAndOfSeveralWhoHasForLongest) {
  Ranking<Client> ranking;
  Client a;
  Client b;
  Client c;
  EXPECT_EQ(ranking.most(), nullptr);
  ranking.set(b, 2);
  ranking.set(a, 2);
  ranking.set(c, 1);
  EXPECT_EQ(ranking.most(), &b);
  ranking.set(b, 2);
  EXPECT_EQ(ranking.most(), &a);
  ranking.set(c, 3);
  EXPECT_EQ(ranking.most(), &c);
  ranking.set(c, 0);
  ranking.set(a, 1);
  EXPECT_EQ(ranking.most(), &b);
  ranking.set(b, 0);
  ranking.set(b, 0);
  EXPECT_EQ(ranking.most(), &a);
}

}  // namespace
}  // namespace sluice
