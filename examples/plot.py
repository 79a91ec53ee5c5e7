# Draws a chart. The sandbox returns the picture and its numbers; nothing is written here.
import matplotlib.pyplot as plt

years = [2021, 2022, 2023, 2024]
sales = [14, 21, 35, 52]

plt.bar(years, sales)
plt.title("Sales")
plt.xlabel("year")
plt.ylabel("thousands")
plt.show()
