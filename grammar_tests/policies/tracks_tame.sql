-- 300 people inside all that is declared: three events of two kinds, one of them without a price.
INSERT INTO track SELECT i, i % 300 + 1, ['open', 'buy'][i // 600 + 1], CASE WHEN i >= 600
  THEN '{"os": "web", "price": ' || (i % 51) || ', "device": {"size": ' || (i % 9 + 1) || '}}'
  ELSE '{"os": "ios", "device": {"size": ' || (i % 9 + 1) || '}}' END FROM range(0, 900) AS t(i);
